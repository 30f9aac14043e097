"""A rehearsal before the first tuple: warms the JVM up and measures what each query costs alone."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from math import inf
from pathlib import Path as File
from typing import TypeVar

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, NumericType, StructType

from headgate.errors import CallTimedOut
from headgate.model.network import Path
from headgate.model.query import QueryStatistics
from headgate.model.stream import ARRIVED_AT
from headgate.scheduler.statistics import PRIOR_SELECTIVITY
from headgate.spark.executor import Executor
from headgate.spark.files import remove
from headgate.spark.jvm.arrow_frames import collected
from headgate.spark.jvm.errors import SPARK_ERRORS
from headgate.spark.patience import within
from headgate.spark.stream_log import Trains

log = logging.getLogger("headgate.spark")

T = TypeVar("T")

FEW, MANY = 100, 5_000
"""Two sizes of train: the difference is the cost of tuples, the smaller is mostly overhead."""

LEAST_S = 10.0
"""What a query may take in any case: its first code is generated while the JVM is cold."""

LEAST_ROUNDS = 2
"""Code is generated in the first round, and measured in the second."""

MORE_ROUNDS = 8
"""How often queries are measured again, each alone, if there is time."""

COSTLY_S, CHEAP_S = 5e-6, 2.5e-7
"""A query that costs more than the first a tuple is costly; most take less than the second."""

SLOW_S = 1.0
"""What a tuple is taken to cost where a query did not end in time."""

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
    """Gives a train of invented tuples of a schema, in a folder and in memory."""
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


class Rehearsal:
    """Runs queries over invented tuples; results go nowhere.

    Args:
        folder: for the tuples.
        call_timeout_s: how long a call may take.
    """

    def __init__(
        self,
        session: SparkSession,
        executor: Executor,
        folder: File,
        call_timeout_s: float = inf,
    ) -> None:
        self._session, self._executor = session, executor
        self._folder, self._call_timeout_s = folder, call_timeout_s
        self._trains: dict[str, tuple[Trains, Trains]] = {}
        self._least_s: dict[str, tuple[float, float]] = {}
        self.alone_s: dict[str, float] = {}
        """What a tuple costs queries that run alone."""

    def is_costly(self, path: Path) -> bool:
        """Tells whether a query takes so long alone that others should not wait for it."""
        return self.alone_s.get(path.known_as, 0.0) > COSTLY_S

    def of_all(
        self,
        paths: Sequence[Path],
        recorded: Mapping[str, QueryStatistics],
        budget_s: float,
        progress: Callable[[int, int], None],
    ) -> dict[str, QueryStatistics]:
        """Measures new queries, then warms up what will run together; gives what is known of all.

        Each is measured alone, as far as three quarters of the time allow. The others are measured
        with those whose code they share; where that is so dear that a costly one must be among
        them, they stay unknown.

        Args:
            recorded: what earlier runs have measured.
        """
        ends_at_s = time.perf_counter() + budget_s
        everything, paths = paths, [path for path in paths if path.stateful is None]
        self._invent(paths)
        self.alone_s |= {name: each.alone_s for name, each in recorded.items()}
        new = [path for path in paths if path.known_as not in recorded]
        known, slow = self._alone(new, budget_s * 0.75, progress)
        self._executor.arrange(everything, self.is_costly)
        quick = [path for path in paths if path.known_as not in slow]
        check = partial(progress, len(new), len(new))
        known = {**self._together(quick, ends_at_s, check), **known, **recorded}
        self._forget()
        return known

    def of_one(self, path: Path, budget_s: float) -> dict[str, QueryStatistics]:
        """Measures one query alone; one with windows is measured as it runs."""
        if path.stateful is not None:
            return {}
        self._invent([path])
        known, _ = self._alone([path], budget_s, lambda done, of: None)
        self._forget()
        return known

    def _alone(
        self, paths: Sequence[Path], budget_s: float, progress: Callable[[int, int], None]
    ) -> tuple[dict[str, QueryStatistics], set[str]]:
        """Gives each query's overhead and cost, as far as the time allows.

        Selectivity on invented tuples means nothing, so it starts from its prior and is learned. A
        query that fails on them (a cast, say) is left to be measured on real ones. So is one that
        takes longer than all others may together: the second value names those.
        """
        known: dict[str, QueryStatistics] = {}
        slow: set[str] = set()
        ends_at_s = time.perf_counter() + budget_s
        for number, path in enumerate(paths):
            if time.perf_counter() > ends_at_s:
                break
            name = path.known_as
            try:
                self._keep(name, self._within(ends_at_s, partial(self._measured, path)), known)
            except SPARK_ERRORS:
                pass
            except CallTimedOut as error:
                slow.add(name)
                self.alone_s[name] = SLOW_S
                self._executor.renew([path])
                log.warning(
                    "query '%s' took longer than %.3g s over %s invented tuples: it starts"
                    " unmeasured, and alone; a call of it may take call_timeout_s, %g s",
                    path.query.name, error.limit_s, MANY, self._call_timeout_s,
                )  # fmt: skip
            progress(number + 1, len(paths))
        self._again([path for path in paths if path.known_as in known], known, ends_at_s)
        return known, slow

    def _again(
        self, paths: Sequence[Path], known: dict[str, QueryStatistics], ends_at_s: float
    ) -> None:
        """Measures queries once more, while there is time, and keeps the least.

        The first were measured while the JVM was colder than for the last, so that they look dearer
        beside them than they are.
        """
        for path in list(paths) * MORE_ROUNDS:
            if time.perf_counter() > ends_at_s:
                return
            with suppress(CallTimedOut, *SPARK_ERRORS):
                taken_s = self._within(ends_at_s, partial(self._measured, path))
                self._keep(path.known_as, taken_s, known)

    def _keep(
        self, name: str, taken_s: tuple[float, float], known: dict[str, QueryStatistics]
    ) -> None:
        """Takes in what few and many tuples took, the least of all times each."""
        before_s = self._least_s.get(name, taken_s)
        few_s, many_s = self._least_s[name] = (
            min(before_s[0], taken_s[0]), min(before_s[1], taken_s[1])
        )  # fmt: skip
        cost_s = self.alone_s[name] = max(LEAST_COST_S, (many_s - few_s) / (MANY - FEW))
        known[name] = QueryStatistics(
            cost_s=cost_s, alone_s=cost_s, selectivity=PRIOR_SELECTIVITY, overhead_s=few_s
        )

    def _measured(self, path: Path, check: Callable[[], None]) -> tuple[float, float]:
        """Gives the seconds of a query over few tuples and over many, each the lesser of two."""
        few, many = self._trains[path.stream]
        taken_s = []
        for train in (few, few, few, many, many):  # the first generates code: none pays for it
            check()
            taken_s.append(self._executor.measure(self._session, path, train))
        return min(taken_s[1:3]), min(taken_s[3:])

    def _together(
        self, paths: Sequence[Path], ends_at_s: float, check: Callable[[], None]
    ) -> dict[str, QueryStatistics]:
        """Runs what will run together, over and over: the JVM needs some hundred runs to be quick.

        Once at the least, so that no tuple waits for code to be generated. What takes too long is
        left as it is. Gives each query's part of what its group costs.

        Args:
            check: called now and then; raises when the start is to end.
        """
        known: dict[str, QueryStatistics] = {}
        together: dict[int, list[Path]] = {}
        for path in paths:
            together.setdefault(id(self._executor.prepared(path)), []).append(path)
        rounds = 0
        while rounds < LEAST_ROUNDS or (together and time.perf_counter() < ends_at_s):
            for key, members in list(together.items()):
                check()
                few, many = self._trains[members[0].stream]
                try:
                    few_s, lane = self._timed(members, few, ends_at_s)
                    if rounds == LEAST_ROUNDS - 1 and lane == "driver":
                        many_s, _ = self._timed(members, many, ends_at_s)
                        known |= _parts(members, few_s, many_s)
                except CallTimedOut:
                    self._executor.renew(members)
                    lane = "job"
                if lane == "job":
                    del together[key]
            rounds += 1
        return known

    def _timed(self, paths: list[Path], train: Trains, ends_at_s: float) -> tuple[float, str]:
        def run(check: Callable[[], None]) -> tuple[float, str]:
            began_s = time.perf_counter()
            _, lane = self._executor.evaluate(self._session, paths, train, check)
            return time.perf_counter() - began_s, lane

        return self._within(ends_at_s, run)

    def _within(self, ends_at_s: float, work: Callable[[Callable[[], None]], T]) -> T:
        left_s = max(LEAST_S, ends_at_s - time.perf_counter())
        return within(self._session.sparkContext, min(self._call_timeout_s, left_s), work)

    def _invent(self, paths: Sequence[Path]) -> None:
        """Makes a train of few and a train of many tuples for every stream that is read."""
        for stream in dict.fromkeys(path.stream for path in paths):
            schema, folder = self._executor.source(stream).schema, self._folder / stream
            self._trains[stream] = (
                invent(self._session, schema, FEW, folder),
                invent(self._session, schema, MANY, folder),
            )

    def _forget(self) -> None:
        self._trains.clear()
        self._least_s.clear()
        remove(self._folder)


def _parts(paths: Sequence[Path], few_s: float, many_s: float) -> dict[str, QueryStatistics]:
    """Splits what a group costs among its members; nothing where a costly one may be among them."""
    cost_s = max(LEAST_COST_S, (many_s - few_s) / (MANY - FEW))
    if cost_s > COSTLY_S + CHEAP_S * len(paths):
        return {}
    part = QueryStatistics(
        cost_s=max(LEAST_COST_S, cost_s / len(paths)),
        selectivity=PRIOR_SELECTIVITY,
        overhead_s=few_s,
    )
    return {path.known_as: part for path in paths}


def _value(kind: DataType) -> Column:
    if isinstance(kind, NumericType):
        return (F.col("id") % 97).cast(kind)
    text = INVENTED.get(kind.simpleString())
    return F.lit(None).cast(kind) if text is None else F.expr(text)
