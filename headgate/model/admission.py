"""Admission: limits and permissions for the text of a query."""

from dataclasses import dataclass

from headgate.errors import ConfigRefused


@dataclass(frozen=True, kw_only=True)
class AdmissionRules:
    """Limits that a text must meet to become a query, and what the administrator allows it to do.

    Args:
        most_text_bytes: maximum length of the text, in UTF-8.
        most_nesting: maximum levels of nested brackets, CASEs and comments.
        most_plan_nodes: maximum operators and expressions in the plan, subqueries included.
        analysis_timeout_s: maximum time for Spark to parse and analyze the text.
        allows_paths: whether it may read files by their path, as in ``parquet.`/data/a` ``.
        allows_reflection: whether it may call Java methods: `reflect`, `java_method`.

    >>> AdmissionRules(most_nesting=0)
    Traceback (most recent call last):
    headgate.errors.ConfigRefused: headgate: most_nesting is 0, but must be above 0 levels.
    """

    most_text_bytes: int = 1 << 20
    most_nesting: int = 500
    most_plan_nodes: int = 50_000
    analysis_timeout_s: float = 30.0
    allows_paths: bool = False
    allows_reflection: bool = False

    def __post_init__(self) -> None:
        units = {
            "most_text_bytes": "bytes",
            "most_nesting": "levels",
            "most_plan_nodes": "nodes",
            "analysis_timeout_s": "seconds",
        }
        for key, unit in units.items():
            value = getattr(self, key)
            if not value > 0:
                raise ConfigRefused(
                    path="headgate", key=key, value=value, expected=f"above 0 {unit}"
                )
