"""Condition samples: the conditions of a running query, each evaluated over a few tuples (E17)."""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headgate.model.events import ConditionSample
from headgate.model.network.network import Path
from headgate.spark.jvm.lane.plan_runner import DriverLane, PlanRunner
from headgate.spark.jvm.query.plans import Parts

log = logging.getLogger("headgate.spark")

MOST_ROWS = 256
"""The most tuples that a sample has."""

FIRST_SAMPLE, SAMPLE_EVERY, PAUSE_S = 256, 100_000, 1.0
"""A query is sampled after FIRST_SAMPLE tuples, then at twice as many and so on, later after every
SAMPLE_EVERY tuples. All queries together are sampled at most once every PAUSE_S seconds."""


class TooFewRows(Exception):
    """No tuple of a sample reaches a condition that may fail."""


@dataclass
class Progress:
    """How many tuples a query has processed, when its next sample is due, and prepared plans."""

    seen: int = 0
    due: int = FIRST_SAMPLE
    plans: list[PlanRunner] = field(default_factory=list)


class ConditionSampler:
    """Evaluates the conditions of queries from time to time, one sample at a time.

    Args:
        driver: where conditions are evaluated.
        parts_of: returns the parts of a query, as it is written.
        now_s: returns the time.
    """

    def __init__(
        self,
        driver: DriverLane,
        parts_of: Callable[[Path], Parts],
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._driver, self._parts_of, self._now_s = driver, parts_of, now_s
        self._progress: dict[str, Progress] = {}
        self._next_s = 0.0
        """When the next sample is allowed; never while one is computed."""
        self._lock = threading.Lock()

    def sample(
        self, unit: int, path: Path, tuples: int, rows: Callable[[], pa.Table]
    ) -> ConditionSample | None:
        """Return a sample of a query if one is due.

        Args:
            tuples: how many tuples the query has processed since the last call.
            rows: returns some of them.
        """
        name = path.query.name
        with self._lock:
            progress = self._progress.setdefault(name, Progress())
            progress.seen += tuples
            if progress.seen < progress.due or self._now_s() < self._next_s:
                return None
            progress.due = progress.seen + min(progress.seen, SAMPLE_EVERY)
            self._next_s = inf
        try:
            return self._evaluate(unit, path, progress, rows().slice(0, MOST_ROWS))
        except Exception as error:  # no query may fail because of its sample
            log.debug("conditions of query '%s' are not measured: %s", name, error)
            with self._lock:
                progress.due = progress.seen + SAMPLE_EVERY
            return None
        finally:
            with self._lock:
                self._next_s = self._now_s() + PAUSE_S

    def forget(self, query: str) -> None:
        """Forget a query that was dropped."""
        with self._lock:
            self._progress.pop(query, None)

    def _evaluate(
        self, unit: int, path: Path, progress: Progress, rows: pa.Table
    ) -> ConditionSample:
        """Evaluate every condition alone, and one that is always true, whose cost is subtracted.

        A condition that may fail sees only the rows that it would see in the written order.
        """
        if not progress.plans:
            parts = self._parts_of(path)
            indexes = [None, *range(len(path.conditions))]
            progress.plans = [self._driver.prepare(parts.condition(index)) for index in indexes]
        stream = path.stream
        empty_s = _timed(progress.plans[0], stream, rows)[1] / rows.num_rows
        tuples, passed, seconds = [], [], []
        reached, guarded = rows, not all(part.never_fails for part in path.conditions)
        for condition, plan in zip(path.conditions, progress.plans[1:], strict=True):
            sampled = rows if condition.never_fails else reached
            if not sampled.num_rows:
                raise TooFewRows(condition.text)
            holds, taken_s = _timed(plan, stream, sampled)
            tuples.append(sampled.num_rows)
            passed.append(int(holds.sum()))
            seconds.append(max(taken_s - empty_s * sampled.num_rows, 0.0))
            if guarded:
                passing = holds if sampled is reached else _timed(plan, stream, reached)[0]
                reached = reached.filter(pa.array(passing))
        return ConditionSample(unit, tuple(tuples), tuple(passed), tuple(seconds))


def _timed(plan: PlanRunner, stream: str, rows: pa.Table) -> tuple[NDArray[np.bool_], float]:
    """Return which rows a condition holds for, and the seconds of the fastest of three runs."""
    times_s = []
    for _ in range(3):
        began_s = time.perf_counter()
        column: Any = plan({stream: rows})["holds"]
        times_s.append(time.perf_counter() - began_s)
    return column.fill_null(False).to_numpy(), min(times_s)
