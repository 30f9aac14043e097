"""The order of a query's conditions: what drops most for its cost comes first (Sharaf §2)."""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headgate.model.network import Condition, Path
from headgate.spark.jvm.plan_runner import DriverLane, PlanRunner
from headgate.spark.jvm.plans import Parts

log = logging.getLogger("headgate.spark")

SAMPLE = 256
"""Tuples that every condition of a query is tried on, alone."""

FIRST_LOOK, LOOK_EVERY, A_LOOK_S = 256, 100_000, 1.0
"""A query's conditions are looked at after so many tuples, then at twice as many and so on, at last
whenever so many have passed; and there is at most one look in so many seconds."""

SMOOTHING = 0.175
"""α of the mean of looks (Sharaf §3.8.5)."""

WORTH_IT = 0.9
"""Another order is taken where a tuple is expected to cost so much less by it."""

LEAST_S = 1e-9


@dataclass
class Figures:
    """What was measured of each of a query's conditions: which part passes, seconds a tuple."""

    selectivity: tuple[float, ...]
    cost_s: tuple[float, ...]

    def take_in(self, later: "Figures") -> None:
        """Smooths over looks."""
        self.selectivity = _smoothed(self.selectivity, later.selectivity)
        self.cost_s = _smoothed(self.cost_s, later.cost_s)


class TooFew(Exception):
    """No tuple of a sample comes as far as a condition that may fail."""


class FilterOrders:
    """Looks at the conditions of queries from time to time and says in which order they run.

    Only conditions that call functions are worth it, and only one that can never fail may overtake
    another: `10 / x > 2` stays behind `x <> 0`, whatever it costs. Selectivities are taken as
    independent of each other.

    Args:
        driver: where conditions are tried.
        parts_of: returns the parts of a query, as it is written.
        now_s: what time it is.
    """

    def __init__(
        self,
        driver: DriverLane,
        parts_of: Callable[[Path], Parts],
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._driver, self._parts_of, self._now_s = driver, parts_of, now_s
        self._seen: dict[str, int] = {}
        self._next: dict[str, int] = {}
        self._orders: dict[str, tuple[int, ...]] = {}
        self._figures: dict[str, Figures] = {}
        self._code: dict[str, list[PlanRunner]] = {}
        self._next_look_s = 0.0
        self._lock = threading.Lock()

    def ordered(self, path: Path, parts: Parts) -> Parts:
        """Return the parts of a query with its conditions in the order that pays."""
        order = self._orders.get(path.query.name)
        if order is None or len(order) != len(path.conditions):
            return parts
        return parts.ordered(order)

    def look(self, path: Path, tuples: int, rows: Callable[[], pa.Table]) -> bool:
        """Measures a query's conditions where it is time to; tells whether their order changes.

        Args:
            tuples: how many have been processed since it was last asked.
            rows: gives some of them.
        """
        name = path.query.name
        if len(path.conditions) < 2:
            return False
        with self._lock:
            self._seen[name] = self._seen.get(name, 0) + tuples
            due = self._seen[name] >= self._next.get(name, FIRST_LOOK)
            if not due or self._now_s() < self._next_look_s:
                return False
            self._next[name] = self._seen[name] + min(self._seen[name], LOOK_EVERY)
            try:
                return self._decide(path, self._measured(path, rows().slice(0, SAMPLE)))
            except Exception as error:  # no query may fail for the sake of its order
                log.debug("conditions of query '%s' stay as they are: %s", name, error)
                self._next[name] = self._seen[name] + LOOK_EVERY
                return False
            finally:
                self._next_look_s = self._now_s() + A_LOOK_S

    def why(self, path: Path) -> str | None:
        """Says in which order conditions run, and why; None where nothing is known of them."""
        figures = self._figures.get(path.query.name)
        if figures is None:
            return None
        order = self._orders.get(path.query.name, tuple(range(len(path.conditions))))
        words = [
            f"{path.conditions[at].text} (passes {figures.selectivity[at]:.3g},"
            f" {figures.cost_s[at] * 1e6:.3g} µs a tuple)"
            for at in order
        ]
        asked = expected_s(figures, tuple(range(len(order)))) * 1e6
        now = expected_s(figures, order) * 1e6
        return f"{', then '.join(words)}; {now:.3g} µs a tuple, as written {asked:.3g}"

    def forget(self, query: str) -> None:
        with self._lock:
            for kept in (self._seen, self._next, self._orders, self._figures, self._code):
                kept.pop(query, None)

    def _measured(self, path: Path, rows: pa.Table) -> Figures:
        """Tries every condition alone, and one that is always true: what any of them costs.

        One that may fail sees the rows that it would see as it is written.
        """
        name = path.query.name
        if name not in self._code:
            parts = self._parts_of(path)
            places = [None, *range(len(path.conditions))]
            self._code[name] = [self._driver.prepare(parts.condition(at)) for at in places]
        stream = path.stream
        nothing_s = _tried(self._code[name][0], stream, rows)[1] / rows.num_rows
        passed, cost_s = [], []
        reached, guarded = rows, not all(each.never_fails for each in path.conditions)
        for condition, code in zip(path.conditions, self._code[name][1:], strict=True):
            tried = rows if condition.never_fails else reached
            if not tried.num_rows:
                raise TooFew(condition.text)
            holds, taken_s = _tried(code, stream, tried)
            passed.append(float(holds.mean()))
            cost_s.append(max(taken_s / tried.num_rows - nothing_s, LEAST_S))
            if guarded:
                seen = holds if tried is reached else _tried(code, stream, reached)[0]
                reached = reached.filter(pa.array(seen))
        return Figures(tuple(passed), tuple(cost_s))

    def _decide(self, path: Path, found: Figures) -> bool:
        name = path.query.name
        self._figures.setdefault(name, found).take_in(found)
        figures = self._figures[name]
        now = self._orders.get(name, tuple(range(len(path.conditions))))
        best = best_order(figures, path.conditions)
        if expected_s(figures, best) > WORTH_IT * expected_s(figures, now):
            return False
        self._orders[name] = best
        return True


def _tried(code: PlanRunner, stream: str, rows: pa.Table) -> tuple[NDArray[np.bool_], float]:
    """Gives of which rows a condition holds, and the seconds that this takes at best."""
    times_s = []
    for _ in range(3):
        began_s = time.perf_counter()
        made: Any = code({stream: rows})["holds"]
        times_s.append(time.perf_counter() - began_s)
    return made.fill_null(False).to_numpy(), min(times_s)


def best_order(figures: Figures, conditions: Sequence[Condition]) -> tuple[int, ...]:
    """Gives conditions by (1 − s) / c, the largest first, and such that none fails that did not.

    A condition that may fail comes behind all that are written before it; one that never fails may
    come earlier than it is written.

    >>> figures = Figures((0.5, 0.1, 0.9), (4e-6, 1e-6, 1e-6))
    >>> best_order(figures, [Condition("f(a)", True), Condition("b", True), Condition("c", True)])
    (1, 0, 2)
    >>> best_order(figures, [Condition("x > 0", True), Condition("9 / x > 1", False)])
    (0, 1)
    """
    left = list(range(len(conditions)))
    order: list[int] = []
    while left:
        may = [at for at in left if conditions[at].never_fails or at == left[0]]
        best = max(may, key=lambda at: (_rank(figures, at), -at))
        left.remove(best)
        order.append(best)
    written = tuple(range(len(conditions)))
    return min(tuple(order), written, key=lambda each: expected_s(figures, each))


def expected_s(figures: Figures, order: Sequence[int]) -> float:
    """Gives what a tuple costs if conditions are tried in an order until one does not hold."""
    total, reached = 0.0, 1.0
    for at in order:
        total += reached * figures.cost_s[at]
        reached *= figures.selectivity[at]
    return total


def _rank(figures: Figures, at: int) -> float:
    return (1.0 - figures.selectivity[at]) / figures.cost_s[at]


def _smoothed(old: tuple[float, ...], new: tuple[float, ...]) -> tuple[float, ...]:
    return tuple((1 - SMOOTHING) * a + SMOOTHING * b for a, b in zip(old, new, strict=True))
