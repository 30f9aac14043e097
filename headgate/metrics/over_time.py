"""Results over time: number, response and slowdown, in equal spans of a run."""

from math import nan

import numpy as np

from headgate.model.arrays import Floats


class ResultsOverTime:
    """Sums by span of time; when there are too many spans, pairs of neighbors are merged.

    >>> spans = ResultsOverTime(every_s=1.0, most=2)
    >>> for second in range(4):
    ...     spans.see(float(second), pending=second)
    ...     spans.add(float(second), np.array([2.0]), np.array([4.0]))
    >>> [row[:2] + row[3:6] for row in spans.rows()]
    [(0.0, 1, 2, 2.0, 4.0), (2.0, 3, 2, 2.0, 4.0)]
    """

    def __init__(self, every_s: float = 0.25, most: int = 400) -> None:
        self._every_s, self._most = every_s, most
        self._pending: dict[int, int] = {}
        self._sums: dict[int, tuple[int, float, float]] = {}

    def see(self, at_s: float, pending: int) -> None:
        """Record the queue size at an instant; the last one in a span is kept."""
        self._pending[self._span(at_s)] = pending

    def add(self, at_s: float, responses_s: Floats, slowdowns: Floats) -> None:
        """Count results that were put out at an instant, except those without a finite response."""
        finite = np.isfinite(responses_s)
        responses_s, slowdowns = responses_s[finite], slowdowns[finite]
        span = self._span(at_s)
        count, response_s, slowdown = self._sums.get(span, (0, 0.0, 0.0))
        self._sums[span] = (
            count + len(responses_s),
            response_s + float(responses_s.sum()),
            slowdown + float(slowdowns.sum()),
        )

    def rows(self) -> tuple[tuple[float, ...], ...]:
        """Return a row per span.

        A row has seconds, pending tuples, bytes, results, mean response, slowdown and utility.
        """
        rows = []
        for span in sorted(self._pending):
            count, response_s, slowdown = self._sums.get(span, (0, 0.0, 0.0))
            means = (response_s / count, slowdown / count) if count else (nan, nan)
            rows.append((span * self._every_s, self._pending[span], nan, count, *means, nan))
        return tuple(rows)

    def _span(self, at_s: float) -> int:
        while (span := int(at_s / self._every_s)) >= self._most:
            self._join()
        return span

    def _join(self) -> None:
        self._every_s *= 2
        self._pending = {span // 2: pending for span, pending in sorted(self._pending.items())}
        joined: dict[int, tuple[int, float, float]] = {}
        for span, (count, response_s, slowdown) in self._sums.items():
            before = joined.get(span // 2, (0, 0.0, 0.0))
            joined[span // 2] = (
                before[0] + count, before[1] + response_s, before[2] + slowdown,
            )  # fmt: skip
        self._sums = joined
