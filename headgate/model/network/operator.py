"""An operator: one box of the network, with its cost and selectivity if they are known."""

from dataclasses import dataclass
from math import inf
from typing import Literal

from headgate.errors import ConfigRefused

Kind = Literal["select", "project", "map", "union", "join", "aggregate", "whole"]
"""`whole` is a query that runs as Spark accepts it, as one operator."""

MAY_MULTIPLY = ("map", "join")
"""Kinds that may put out more than one tuple per tuple in."""

WINDOW_KEYS = (
    ("window_s", "join", "seconds"), ("range_s", "aggregate", "seconds"),
    ("slide_s", "aggregate", "seconds"), ("range_tuples", "aggregate", "tuples"),
    ("slide_tuples", "aggregate", "tuples"),
)  # fmt: skip
"""The fields of windows, the kind of operator that has them, and their unit."""


@dataclass(frozen=True, kw_only=True)
class Operator:
    """One operation on tuples.

    Args:
        expressions: SQL of the predicate (`select`), of the output columns (`project`) or of the
            query itself (`whole`); empty where only cost and selectivity matter.
        cost_s: c, seconds per tuple. Zero or less is refused: a free box cannot be ranked.
        selectivity: s, tuples out per tuple in; for a join, the probability that two tuples match.
            An aggregate has none: it puts out one result per slide, whatever comes in.
        window_s: V of a join: the maximum distance in time of tuples that match (Sharaf §2.2.1).
        range_s, slide_s: the window of an aggregate in seconds, and how often it closes (Sharaf
            §2.2.2). A result arrives when its window ends.
        range_tuples, slide_tuples: the same for a window by tuples. A result arrives with the last
            tuple of its window.
        attribute: operators that test the same attribute pass the same tuples, as the select
            operators of Sharaf's testbed do (§3.7); None is independent of all others.
        bytes_out: size of an output tuple.

    >>> Operator(kind="select", cost_s=0.002, selectivity=0.33).selectivity
    0.33
    """

    kind: Kind
    expressions: tuple[str, ...] = ()
    cost_s: float | None = None
    selectivity: float | None = None
    window_s: float | None = None
    range_s: float | None = None
    slide_s: float | None = None
    range_tuples: int | None = None
    slide_tuples: int | None = None
    attribute: int | None = None
    bytes_out: float = 1.0

    def __post_init__(self) -> None:
        if self.cost_s is not None and not 0 < self.cost_s < inf:
            self._refuse("cost_s", self.cost_s, "above 0 seconds")
        most = inf if self.kind in MAY_MULTIPLY else 1.0
        if self.selectivity is not None and not 0 <= self.selectivity <= most:
            expected = "between 0 and 1" if most == 1.0 else "0 or more"
            self._refuse("selectivity", self.selectivity, expected)
        by_tuples = self.range_tuples is not None or self.slide_tuples is not None
        for key, kind, unit in WINDOW_KEYS:
            value, wanted = getattr(self, key), by_tuples == (unit == "tuples")
            has_it = self.kind == kind and (kind == "join" or wanted)
            if has_it and (value is None or not 0 < value < inf):
                self._refuse(key, value, f"above 0 {unit}")
            if has_it and unit == "tuples" and value != int(value):
                self._refuse(key, value, "a whole number")
            if not has_it and value is not None:
                only = f"only a{'n' * (kind[0] == 'a')} {kind} has it"
                reason = "a window is by time or by tuples" if self.kind == kind else only
                self._refuse(key, value, f"left out: {reason}")
        if not 0 <= self.bytes_out < inf:
            self._refuse("bytes_out", self.bytes_out, "0 or more bytes")

    @property
    def closes_by_clock(self) -> bool:
        """Whether it is an aggregate over windows by time, whose results the clock triggers."""
        return self.slide_s is not None

    def _refuse(self, key: str, value: object, expected: str) -> None:
        raise ConfigRefused(path=f"operator '{self.kind}'", key=key, value=value, expected=expected)
