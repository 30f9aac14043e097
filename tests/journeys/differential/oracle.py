"""The expected answers: Spark in batch over tuples that plain Python has chosen.

Nothing here calls the engine. A window's tuples are chosen by their times and numbers, and the
text is evaluated over them alone.
"""

from collections.abc import Iterable, Iterator
from functools import reduce

from pyspark.sql import DataFrame

from differential.cases import HIDDEN, Case, Source, Window
from differential.world import Tuple, World


class Oracle:
    """An evaluator of queries in batch, in the world's session."""

    def __init__(self, world: World) -> None:
        self._world, self._session = world, world.session
        self._views: dict[tuple[str, tuple[int, ...]], str] = {}

    def frame(self, case: Case) -> DataFrame:
        """Return the answer as a frame; nothing is executed yet.

        Raises:
            pyspark.errors.PySparkException: Spark cannot analyze the text.
        """
        return getattr(self, _METHODS[case.kind])(case)

    def _stateless(self, case: Case) -> DataFrame:
        return self._over(case, [self._world.tuples[source.stream] for source in case.sources])

    def _windows(self, case: Case) -> DataFrame:
        frames = [
            self._over(case, rows, start=start, end=end) for start, end, rows in self._closed(case)
        ]
        if not frames:
            nothing: list[list[Tuple]] = [[] for _ in case.sources]
            by_number = case.sources[0].window and case.sources[0].window.axis == "rows"
            bound = "0L" if by_number else "timestamp_micros(0L)"
            frames = [self._over(case, nothing, start=bound, end=bound).where("false")]
        return reduce(DataFrame.unionAll, frames)

    def _closed(self, case: Case) -> Iterator[tuple[str, str, list[list[Tuple]]]]:
        """Yield the bounds and tuples of windows that have closed and are not empty."""
        windows = [source.window for source in case.sources if source.window is not None]
        slide = windows[0].slide or windows[0].size
        if windows[0].axis == "rows":
            (source,), size = case.sources, windows[0].size
            rows = self._world.tuples[source.stream]
            for end in range(slide, len(rows) + 1, slide):
                yield f"{end - size}L", f"{end}L", [rows[max(0, end - size) : end]]
            return
        punctual = [self._world.in_time(source.stream) for source in case.sources]
        upto = min(mark for _, mark in punctual)
        ends = {
            end
            for (rows, _), window in zip(punctual, windows, strict=True)
            for row in rows
            for end in _ends(row, window.size, slide)
            if end <= upto
        }
        for end in sorted(ends):
            chosen = [
                [row for row in rows if end - window.size <= _micros(row) < end]
                for (rows, _), window in zip(punctual, windows, strict=True)
            ]
            start = end - windows[0].size
            yield f"timestamp_micros({start}L)", f"timestamp_micros({end}L)", chosen

    def _window_function(self, case: Case) -> DataFrame:
        rows, mark = self._world.in_time(case.sources[0].stream)
        # Leave out tuples that are only in open windows: Headgate has not evaluated them yet, and
        # the query may fail on one of them.
        rows = [row for row in rows if _first_end(row, case.called) <= mark]
        frame = self._over(case, [rows], close=f", window.end AS {HIDDEN}")
        if case.order:
            order = case.order.replace("window.end", HIDDEN)
            place = f"row_number() OVER (PARTITION BY {HIDDEN} ORDER BY {order}) AS place_"
            frame = frame.selectExpr("*", place).where(f"place_ <= {case.limit}").drop("place_")
        return _closed_by(frame, f"<= timestamp_micros({mark}L)")

    def _session_function(self, case: Case) -> DataFrame:
        rows, mark = self._world.in_time(case.sources[0].stream)
        frame = self._over(case, [rows], close=f", session_window.end AS {HIDDEN}")
        return _closed_by(frame, f"< timestamp_micros({mark}L)")

    def _pairs(self, case: Case) -> DataFrame:
        """Evaluate a join over windows, with conditions that partners are near and rows final."""
        (left, right), (a, b) = case.sources, [source.alias for source in case.sources]
        assert left.window is not None
        assert right.window is not None
        if left.window.axis == "rows":
            near = f" AND {a}.id - {b}.id < {right.window.size}"
            near += f" AND {b}.id - {a}.id < {left.window.size}"
            return self._over(case, [self._world.tuples[left.stream]] * 2, near=near)
        sides = [self._world.in_time(source.stream) for source in case.sources]
        upto = f"timestamp_micros({min(mark for _, mark in sides)}L)"
        sizes = [_interval(source.window.size) for source in (left, right) if source.window]
        near = f" AND {a}.ts >= {b}.ts - {sizes[0]} AND {b}.ts >= {a}.ts - {sizes[1]}"
        of_left, of_right = f"{a}.ts + {sizes[0]} < {upto}", f"{b}.ts + {sizes[1]} < {upto}"
        rows = [punctual for punctual, _ in sides]
        return self._over(case, rows, near=near, final=_final(case, of_left, of_right))

    def _bounded(self, case: Case) -> DataFrame:
        """Evaluate a join whose text bounds the times, with the condition that rows are final."""
        a, b = (source.alias for source in case.sources)
        sides = [self._world.in_time(source.stream) for source in case.sources]
        upto = f"timestamp_micros({min(mark for _, mark in sides)}L)"
        before, behind = map(_interval, case.bounds)
        final = _final(case, f"{a}.ts + {behind} < {upto}", f"{b}.ts + {before} < {upto}")
        return self._over(case, [punctual for punctual, _ in sides], final=final)

    def _union(self, case: Case) -> DataFrame:
        sides = [self._world.in_time(source.stream) for source in case.sources]
        upto = min(mark for _, mark in sides)
        return self._over(case, [[row for row in rows if _micros(row) < upto] for rows, _ in sides])

    def _over(self, case: Case, rows: list[list[Tuple]], **places: str) -> DataFrame:
        views = [
            source.read_from(self._view(source, chosen))
            for source, chosen in zip(case.sources, rows, strict=True)
        ]
        return self._session.sql(case.text(views, **places))

    def _view(self, source: Source, rows: Iterable[Tuple]) -> str:
        """Return the name of a view of some tuples of a stream, in the order of the log."""
        numbers = tuple(row.number for row in rows)
        key = source.stream, numbers
        if key not in self._views:
            frame = self._world.frame(source.stream)
            if len(numbers) < len(self._world.tuples[source.stream]):
                chosen = ", ".join(f"{number}L" for number in numbers)
                frame = frame.where(f"id IN ({chosen})" if chosen else "false")
            name = f"rows_of_{source.stream}_{len(self._views)}"
            frame.createOrReplaceTempView(name)
            self._views[key] = name
        return self._views[key]


_METHODS = {
    "stateless": "_stateless",
    "windows": "_windows",
    "window()": "_window_function",
    "session_window()": "_session_function",
    "pairs": "_pairs",
    "bounded": "_bounded",
    "union": "_union",
}


def _final(case: Case, of_left: str, of_right: str) -> str:
    """Return the condition that a row is final: no tuple that is yet to arrive can change it.

    Args:
        of_left: the condition that a tuple of the first stream can have no more partners.
        of_right: the same condition for the second stream.
    """
    a, b = (source.alias for source in case.sources)
    final = {
        "LEFT": f"({b}.ts IS NOT NULL OR {of_left})",
        "RIGHT": f"({a}.ts IS NOT NULL OR {of_right})",
        "FULL": f"CASE WHEN {b}.ts IS NULL THEN {of_left} WHEN {a}.ts IS NULL THEN {of_right}"
        " ELSE true END",
        "LEFT SEMI": of_left,
        "LEFT ANTI": of_left,
    }.get(case.join, "true")
    return f" AND {final}"


def _closed_by(frame: DataFrame, bound: str) -> DataFrame:
    """Return the rows of windows that have closed.

    The window function is a barrier. Without it Spark 4.3 pushes the condition below the aggregate,
    where every tuple still has its own session, and sessions lose their last tuples.
    """
    apart = frame.selectExpr("*", "count(*) OVER () AS barrier_")
    return apart.where(f"{HIDDEN} {bound} AND barrier_ > 0").drop(HIDDEN, "barrier_")


def _micros(row: Tuple) -> int:
    assert row.micros is not None
    return row.micros


def _ends(row: Tuple, size: int, slide: int) -> range:
    """Return the ends of the windows that contain a tuple.

    >>> list(_ends(Tuple(0, 25, ()), 20, 10))
    [30, 40]
    """
    first = _micros(row) // slide * slide + slide
    return range(first, _micros(row) + size + 1, slide)


def _first_end(row: Tuple, window: Window) -> int:
    """Return the end of the first window that contains a tuple.

    >>> _first_end(Tuple(0, 25, ()), Window("time", 12, 10, ""))
    32
    """
    slide = window.slide or window.size
    return (_micros(row) - window.size) // slide * slide + slide + window.size


def _interval(micros: int) -> str:
    return f"make_dt_interval(0, 0, 0, {micros}L / 1000000BD)"
