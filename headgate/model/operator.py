"""An operator: one box of the network, with its cost and selectivity where they are known."""

from dataclasses import dataclass
from typing import Literal

from headgate.errors import ConfigRefused

Kind = Literal["select", "project", "whole"]
"""`whole` is a query that runs as Spark accepts it, as one operator."""


@dataclass(frozen=True, kw_only=True)
class Operator:
    """One operation on tuples.

    Args:
        expressions: SQL of the predicate (`select`), of the output columns (`project`) or of the
            query itself (`whole`); empty where only cost and selectivity matter.
        cost_s: c, seconds a tuple. Zero or less is refused: a free box cannot be ranked.
        selectivity: s, tuples out per tuple in.

    >>> Operator(kind="select", cost_s=0.002, selectivity=0.33).selectivity
    0.33
    """

    kind: Kind
    expressions: tuple[str, ...] = ()
    cost_s: float | None = None
    selectivity: float | None = None

    def __post_init__(self) -> None:
        if self.cost_s is not None and not self.cost_s > 0:
            self._refuse("cost_s", self.cost_s, "above 0 seconds")
        if self.selectivity is not None and not 0 <= self.selectivity <= 1:
            self._refuse("selectivity", self.selectivity, "between 0 and 1")

    def _refuse(self, key: str, value: object, expected: str) -> None:
        raise ConfigRefused(path=f"operator '{self.kind}'", key=key, value=value, expected=expected)
