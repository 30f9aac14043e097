"""Pending tuples and results over time, in a few hundred samples however long the run."""

from math import nan

import numpy as np

from headgate.model.arrays import Floats, Ints


class PendingOverTime:
    """Pending tuples by class, in at most a few hundred samples however long the run.

    >>> samples = PendingOverTime(every_s=1.0, most=4)
    >>> for second in range(9):
    ...     samples.see(float(second), np.array([second]))
    >>> samples.rows
    [(0.0, 0), (4.0, 4), (8.0, 8)]
    """

    def __init__(self, every_s: float = 0.25, most: int = 512) -> None:
        self._every_s, self._most, self._next_s = every_s, most, 0.0
        self.rows: list[tuple[float, ...]] = []

    def see(self, at_s: float, by_class: Ints) -> None:
        """Record a sample if one is due; if there are too many, drop every other one."""
        if at_s < self._next_s:
            return
        self.rows.append((at_s, *by_class.tolist()))
        if len(self.rows) > self._most:
            self.rows = self.rows[::2]
            self._every_s *= 2
        self._next_s = self.rows[-1][0] + self._every_s


class ResultsOverTime:
    """Sums by span of time; when there are too many spans, pairs of neighbors are merged.

    >>> spans = ResultsOverTime(every_s=1.0, most=2)
    >>> for second in range(4):
    ...     spans.see(float(second), pending=second, size_bytes=8.0 * second)
    ...     spans.add(float(second), np.array([2.0]), np.array([4.0]), np.array([0.5]))
    >>> spans.rows()
    ((0.0, 1, 8.0, 2, 2.0, 4.0, 0.5), (2.0, 3, 24.0, 2, 2.0, 4.0, 0.5))
    """

    def __init__(self, every_s: float = 0.25, most: int = 400) -> None:
        self._every_s, self._most = every_s, most
        self._pending: dict[int, tuple[int, float]] = {}
        self._sums: dict[int, Floats] = {}

    def see(self, at_s: float, pending: int, size_bytes: float) -> None:
        """Record the size of all queues at an instant; the last one in a span is kept."""
        self._pending[self._span(at_s)] = pending, size_bytes

    def add(self, at_s: float, responses_s: Floats, slowdowns: Floats, utilities: Floats) -> None:
        """Count results that were put out at an instant, except those without a finite response.

        Args:
            utilities: NaN for results of queries without a QoS graph.
        """
        finite = np.isfinite(responses_s)
        judged = ~np.isnan(utilities)
        sums = (
            np.count_nonzero(finite), responses_s[finite].sum(), slowdowns[finite].sum(),
            np.count_nonzero(judged), utilities[judged].sum(),
        )  # fmt: skip
        span = self._span(at_s)
        self._sums[span] = self._sums.get(span, np.zeros(len(sums))) + sums

    def rows(self) -> tuple[tuple[float, ...], ...]:
        """Return a row per span.

        A row has seconds, pending tuples, bytes, results, mean response, slowdown and utility.
        """
        rows = []
        for span, (pending, size_bytes) in sorted(self._pending.items()):
            sums = self._sums.get(span, np.zeros(5)).tolist()
            count, response_s, slowdown, judged, utility = sums
            means = (response_s / count, slowdown / count) if count else (nan, nan)
            worth = utility / judged if judged else nan
            rows.append((span * self._every_s, pending, size_bytes, int(count), *means, worth))
        return tuple(rows)

    def _span(self, at_s: float) -> int:
        while (span := int(at_s / self._every_s)) >= self._most:
            self._join()
        return span

    def _join(self) -> None:
        self._every_s *= 2
        self._pending = {span // 2: pending for span, pending in sorted(self._pending.items())}
        joined: dict[int, Floats] = {}
        for span, sums in self._sums.items():
            joined[span // 2] = joined[span // 2] + sums if span // 2 in joined else sums
        self._sums = joined
