"""A rehearsal before the first tuple: warms up the JVM and times each query alone."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import inf
from pathlib import Path as File
from typing import TypeVar

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, NumericType, StructType

from headgate.errors import CallTimedOut
from headgate.model.network.network import Path
from headgate.model.plan import Lane
from headgate.model.query import QueryStatistics
from headgate.model.stream import ARRIVED_AT
from headgate.scheduler.statistics import PRIOR_SELECTIVITY
from headgate.spark.execution.executor import Executor
from headgate.spark.jvm.arrow_frames import collected
from headgate.spark.jvm.errors import SPARK_ERRORS
from headgate.spark.log.files import remove
from headgate.spark.log.trains import Trains
from headgate.spark.time_limit import within

log = logging.getLogger("headgate.spark")

T = TypeVar("T")

FEW, MANY = 100, 5_000
"""Tuples in the two trains of a rehearsal. The time of the smaller one is mostly overhead; the
difference between the two is the cost of the tuples."""

LEAST_S = 10.0
"""The time that a query gets in any case: its code is first generated while the JVM is cold."""

LEAST_ROUNDS = 2
"""Code is generated in the first round, and measured in the second."""

COSTLY_S, CHEAP_S = 5e-6, 2.5e-7
"""A query that takes more than COSTLY_S per tuple is costly; most take less than CHEAP_S."""

SLOW_S = 1.0
"""The assumed cost per tuple of a query that did not end in time."""

LEAST_COST_S = 1e-8

INVENTED = {
    "string": "concat('v', id % 97)",
    "boolean": "id % 2 = 0",
    "date": "date_add(DATE'2020-01-01', CAST(id % 365 AS INT))",
    "timestamp": "timestamp_seconds(1577836800 + id)",
    "timestamp_ntz": "CAST(timestamp_seconds(1577836800 + id) AS TIMESTAMP_NTZ)",
    "binary": "CAST(concat('v', id % 97) AS BINARY)",
}


def invent(session: SparkSession, schema: StructType, rows: int, folder: File) -> Trains:
    """Write a train of invented tuples of a schema to a folder; return it, also held in memory."""
    columns = [
        _value(field.dataType).alias(field.name)
        for field in schema.fields
        if field.name != ARRIVED_AT
    ]
    path = str(folder / f"{rows}.parquet")
    frame = session.range(0, rows, 1, 1).select(*columns, F.lit(0.0).alias(ARRIVED_AT))
    frame.write.mode("overwrite").parquet(path)
    table = collected(frame)
    return Trains(schema, [path], rows, lambda: table)


class WarmUp:
    """Runs queries over invented tuples and discards the results.

    Args:
        folder: where the invented tuples are written.
        call_timeout_s: how long a call may take.
        lane: the lane that queries are rehearsed on.
    """

    def __init__(
        self,
        session: SparkSession,
        executor: Executor,
        folder: File,
        call_timeout_s: float = inf,
        lane: Lane = "driver",
    ) -> None:
        self._session, self._executor, self._lane = session, executor, lane
        self._folder, self._call_timeout_s = folder, call_timeout_s
        self._trains: dict[str, tuple[Trains, Trains]] = {}
        self.alone_s: dict[str, float] = {}
        """By the name of its statistics, what a tuple costs a query that runs alone."""

    def is_costly(self, path: Path) -> bool:
        """Return True if a query takes so long alone that others should not wait for it."""
        return self.alone_s.get(path.known_as, 0.0) > COSTLY_S

    def of_all(
        self,
        paths: Sequence[Path],
        recorded: Mapping[str, QueryStatistics],
        budget_s: float,
        progress: Callable[[int, int], None],
    ) -> dict[str, QueryStatistics]:
        """Time new queries, then warm up the groups that will run together; return all statistics.

        Each new query is timed alone, until three quarters of the time are used. For the queries
        that are not timed by then, the warm-up measures the group whose code they share. If a group
        takes so long that a costly query must be in it, its queries stay unmeasured.

        Args:
            recorded: what earlier runs have measured.
            progress: called with the number of queries warmed up, and the number of new queries.
        """
        ends_at_s = time.perf_counter() + budget_s
        all_paths, paths = paths, [path for path in paths if path.kind.takes_single_tuples]
        self._invent(paths)
        self.alone_s |= {name: figures.alone_s for name, figures in recorded.items()}
        new = [path for path in paths if path.known_as not in recorded]
        measured, slow = self._alone(new, budget_s * 0.75, progress)
        self._executor.arrangement.arrange(all_paths, self.is_costly)
        quick = [path for path in paths if path.known_as not in slow]
        check = partial(progress, len(new), len(new))
        statistics = {**self._time_groups(quick, ends_at_s, check), **measured, **recorded}
        self._forget()
        return statistics

    def of_one(self, path: Path, budget_s: float) -> dict[str, QueryStatistics]:
        """Time one query alone. A query with windows is measured only when it runs."""
        if not path.kind.takes_single_tuples:
            return {}
        self._invent([path])
        measured, _ = self._alone([path], budget_s, lambda done, total: None)
        self._forget()
        return measured

    def _alone(
        self, paths: Sequence[Path], budget_s: float, progress: Callable[[int, int], None]
    ) -> tuple[dict[str, QueryStatistics], set[str]]:
        """Measure the overhead and cost of each query, as far as the time allows.

        All queries are warmed up before the first is timed: otherwise the first would look more
        expensive than the last. Selectivity on invented tuples means nothing, so it starts from its
        prior and is learned. A query that fails on invented tuples (on a cast, for example) is
        measured on real ones later. So is a query that uses up the time that is left.

        Return the statistics by name, and the names of the queries that used up the time.
        """
        measured: dict[str, QueryStatistics] = {}
        slow: set[str] = set()
        began_s = time.perf_counter()
        warm_until_s, ends_at_s = began_s + budget_s * 0.75, began_s + budget_s
        warm: list[Path] = []

        def run(path: Path, step: Callable[[Callable[[], None]], None]) -> bool:
            """Return True if a query ran. A query that took too long is added to `slow`."""
            try:
                self._within(ends_at_s, step)
            except SPARK_ERRORS:
                return False
            except CallTimedOut as error:
                self._give_up(path, error.limit_s)
                slow.add(path.known_as)
                return False
            return True

        for number, path in enumerate(paths):
            if time.perf_counter() > warm_until_s:
                break
            if run(path, partial(self._warm_up, path)):
                warm.append(path)
            progress(number + 1, len(paths))
        for path in warm:
            if time.perf_counter() > ends_at_s:
                break
            run(path, partial(self._time, path, measured))
        return measured, slow

    def _give_up(self, path: Path, limit_s: float) -> None:
        self.alone_s[path.known_as] = SLOW_S
        self._executor.arrangement.renew([path])
        log.warning(
            "query '%s' took longer than %.3g s over %s invented tuples: it starts unmeasured, and"
            " alone; a call of it may take call_timeout_s, %g s",
            path.query.name, limit_s, MANY, self._call_timeout_s,
        )  # fmt: skip

    def _warm_up(self, path: Path, check: Callable[[], None]) -> None:
        """Run a query, so that its code is generated."""
        for train in self._trains[path.stream]:
            check()
            self._executor.measure(self._session, path, train, self._lane)

    def _time(
        self, path: Path, measured: dict[str, QueryStatistics], check: Callable[[], None]
    ) -> None:
        """Time a query over few tuples and over many, and add its statistics to `measured`."""
        taken_s = []
        for train in self._trains[path.stream]:
            check()
            seconds, lane = self._executor.measure(self._session, path, train, self._lane)
            taken_s.append(seconds)
        few_s, many_s = taken_s
        cost_s = self.alone_s[path.known_as] = _tuple_s(few_s, many_s)
        measured[path.known_as] = QueryStatistics(
            cost_s=cost_s,
            alone_s=cost_s,
            selectivity=PRIOR_SELECTIVITY,
            overhead_s=few_s,
            lane=lane,
        )

    def _time_groups(
        self, paths: Sequence[Path], ends_at_s: float, check: Callable[[], None]
    ) -> dict[str, QueryStatistics]:
        """Run the groups over and over: the JVM needs some hundred runs to be fast.

        Each group runs at least once, so that no tuple waits for code to be generated. A group that
        takes too long is not repeated. Return each query's share of the cost of its group.

        Args:
            check: called now and then; raises when the start is to end.
        """
        measured: dict[str, QueryStatistics] = {}
        groups: dict[int, list[Path]] = {}
        for path in paths:
            groups.setdefault(id(self._executor.arrangement.prepared(path)), []).append(path)
        rounds = 0
        while rounds < LEAST_ROUNDS or (groups and time.perf_counter() < ends_at_s):
            for key, members in list(groups.items()):
                check()
                few, many = self._trains[members[0].stream]
                try:
                    few_s, lane = self._timed(members, few, ends_at_s)
                    if rounds == LEAST_ROUNDS - 1 and lane == "driver":
                        many_s, _ = self._timed(members, many, ends_at_s)
                        measured |= _shares(members, few_s, many_s)
                except CallTimedOut:
                    self._executor.arrangement.renew(members)
                    lane = "job"
                if lane == "job":
                    del groups[key]
            rounds += 1
        return measured

    def _timed(self, paths: list[Path], train: Trains, ends_at_s: float) -> tuple[float, str]:
        def run(check: Callable[[], None]) -> tuple[float, str]:
            began_s = time.perf_counter()
            _, lane = self._executor.evaluate(self._session, paths, train, self._lane, check)
            return time.perf_counter() - began_s, lane

        return self._within(ends_at_s, run)

    def _within(self, ends_at_s: float, work: Callable[[Callable[[], None]], T]) -> T:
        left_s = max(LEAST_S, ends_at_s - time.perf_counter())
        return within(self._session.sparkContext, min(self._call_timeout_s, left_s), work)

    def _invent(self, paths: Sequence[Path]) -> None:
        """Invent a train of few and a train of many tuples for every stream that is read."""
        for stream in dict.fromkeys(path.stream for path in paths):
            schema, folder = self._executor.source(stream).schema, self._folder / stream
            self._trains[stream] = (
                invent(self._session, schema, FEW, folder),
                invent(self._session, schema, MANY, folder),
            )

    def _forget(self) -> None:
        self._trains.clear()
        remove(self._folder)


def _shares(paths: Sequence[Path], few_s: float, many_s: float) -> dict[str, QueryStatistics]:
    """Split the cost of a group among its members; return {} if a costly one may be among them."""
    cost_s = _tuple_s(few_s, many_s)
    if cost_s > COSTLY_S + CHEAP_S * len(paths):
        return {}
    share = QueryStatistics(
        cost_s=max(LEAST_COST_S, cost_s / len(paths)),
        selectivity=PRIOR_SELECTIVITY,
        overhead_s=few_s,
    )
    return {path.known_as: share for path in paths}


def _tuple_s(few_s: float, many_s: float) -> float:
    return max(LEAST_COST_S, (many_s - few_s) / (MANY - FEW))


def _value(kind: DataType) -> Column:
    if isinstance(kind, NumericType):
        return (F.col("id") % 97).cast(kind)
    text = INVENTED.get(kind.simpleString())
    return F.lit(None).cast(kind) if text is None else F.expr(text)
