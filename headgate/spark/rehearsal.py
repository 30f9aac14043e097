"""A rehearsal before the first tuple: warms the JVM up and measures what each query costs alone."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import inf
from pathlib import Path as File

from pyspark.sql import SparkSession
from pyspark.sql.types import DataType, StructType

from headgate.errors import CallTimedOut
from headgate.model.network import Path
from headgate.model.query import QueryStatistics
from headgate.model.stream import ARRIVED_AT
from headgate.scheduler.statistics import PRIOR_SELECTIVITY
from headgate.spark.executor import Executor
from headgate.spark.patience import within
from headgate.spark.refusals import SPARK_ERRORS
from headgate.spark.stream_log import Trains

log = logging.getLogger("headgate.spark")

FEW, MANY = 100, 5_000
"""Two sizes of train: the difference is the cost of tuples, the smaller is mostly overhead."""

LEAST_S = 10.0
"""What a query may take in any case: its first code is generated while the JVM is cold."""

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
        f"{_value(field.dataType)} AS `{field.name}`"
        for field in schema.fields
        if field.name != ARRIVED_AT
    ]
    path = str(folder / f"{rows}.parquet")
    frame = session.range(0, rows, 1, 1).selectExpr(*columns, f"0D AS {ARRIVED_AT}")
    frame.write.mode("overwrite").parquet(path)
    table = frame.toArrow()
    return Trains(schema, [path], rows, lambda: table)


def rehearse(
    session: SparkSession,
    executor: Executor,
    paths: Sequence[Path],
    trains: Mapping[str, tuple[Trains, Trains]],
    *,
    budget_s: float,
    progress: Callable[[int, int], None],
    call_timeout_s: float = inf,
) -> tuple[dict[str, QueryStatistics], set[str]]:
    """Gives each query's overhead and cost, as far as the time allows; results go nowhere.

    Selectivity on invented tuples means nothing, so it starts from its prior and is learned. A
    query that fails on them (a cast, say) is left to be measured on real ones. So is one that
    takes longer than all others may together: the second value names those.

    Args:
        trains: by stream, the train of few and the train of many tuples.
        call_timeout_s: how long a call may take.
    """
    known: dict[str, QueryStatistics] = {}
    slow: set[str] = set()
    ends_at_s = time.perf_counter() + budget_s
    for number, path in enumerate(paths):
        if time.perf_counter() > ends_at_s:
            break
        limit_s = min(call_timeout_s, max(LEAST_S, ends_at_s - time.perf_counter()))
        name, measured = path.query.name, partial(_measured, session, executor, path, trains)
        try:
            known[name] = within(session.sparkContext, limit_s, measured)
        except SPARK_ERRORS:
            pass
        except CallTimedOut:
            slow.add(name)
            executor.renew([path])
            log.warning(
                "query '%s' took longer than %.3g s over %s invented tuples: it starts unmeasured,"
                " and alone; a call of it may take call_timeout_s, %g s",
                name, limit_s, MANY, call_timeout_s,
            )  # fmt: skip
        progress(number + 1, len(paths))
    return known, slow


def _measured(
    session: SparkSession,
    executor: Executor,
    path: Path,
    trains: Mapping[str, tuple[Trains, Trains]],
    check: Callable[[], None],
) -> QueryStatistics:
    few, many = trains[path.stream]
    taken_s = []
    for train in (few, few, few, many, many):  # the first generates code: no later run pays for it
        check()
        taken_s.append(executor.measure(session, path, train))
    few_s, many_s = min(taken_s[1:3]), min(taken_s[3:])
    return QueryStatistics(
        cost_s=max(1e-8, (many_s - few_s) / (MANY - FEW)),
        selectivity=PRIOR_SELECTIVITY,
        overhead_s=few_s,
    )


def warm_up(
    session: SparkSession,
    executor: Executor,
    paths: Sequence[Path],
    trains: Mapping[str, Trains],
    ends_at_s: float,
    call_timeout_s: float = inf,
    check: Callable[[], None] = lambda: None,
) -> None:
    """Runs what will run together, over and over: the JVM needs some hundred runs to be quick.

    Once at the least, so that no tuple waits for code to be generated. What takes too long is left
    as it is.

    Args:
        check: called now and then; raises when the start is to end.
    """
    together: dict[int, list[Path]] = {}
    for path in paths:
        together.setdefault(id(executor.prepared(path)), []).append(path)
    rounds = 0
    while not rounds or (together and time.perf_counter() < ends_at_s):
        for key, members in list(together.items()):
            check()
            few = trains[members[0].stream]
            limit_s = min(call_timeout_s, max(LEAST_S, ends_at_s - time.perf_counter()))
            run = partial(executor.evaluate, session, members, few)
            try:
                _, lane = within(session.sparkContext, limit_s, run)
            except CallTimedOut:
                executor.renew(members)
                lane = "job"
            if lane == "job":
                del together[key]
        rounds += 1


def _value(kind: DataType) -> str:
    name = kind.simpleString()
    if name in INVENTED:
        return INVENTED[name]
    if name.startswith(("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")):
        return f"CAST(id % 97 AS {name})"
    return f"CAST(NULL AS {name})"
