"""A rehearsal before the first tuple: warms the JVM up and measures what each query costs alone."""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path as File

from pyspark.sql import SparkSession
from pyspark.sql.types import DataType, StructType

from headgate.model.network import Path
from headgate.model.query import QueryStatistics
from headgate.model.stream import ARRIVED_AT
from headgate.scheduler.statistics import PRIOR_SELECTIVITY
from headgate.spark.executor import Executor
from headgate.spark.refusals import SPARK_ERRORS
from headgate.spark.stream_log import Trains

FEW, MANY = 100, 5_000
"""Two sizes of train: the difference is the cost of tuples, the smaller is mostly overhead."""

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
) -> dict[str, QueryStatistics]:
    """Gives each query's overhead and cost, as far as the time allows; results go nowhere.

    Selectivity on invented tuples means nothing, so it starts from its prior and is learned. A
    query that fails on them (a cast, say) is left to be measured on real ones.

    Args:
        trains: by stream, the train of few and the train of many tuples.
    """
    known: dict[str, QueryStatistics] = {}
    ends_at_s = time.perf_counter() + budget_s
    for number, path in enumerate(paths):
        if time.perf_counter() > ends_at_s:
            break
        few, many = trains[path.stream]
        try:
            executor.measure(session, path, few)  # generates the code: no later run pays for it
            few_s = min(executor.measure(session, path, few) for _ in range(2))
            many_s = min(executor.measure(session, path, many) for _ in range(2))
        except SPARK_ERRORS:
            continue
        cost_s = max(1e-8, (many_s - few_s) / (MANY - FEW))
        known[path.query.name] = QueryStatistics(
            cost_s=cost_s,
            alone_s=cost_s,
            selectivity=PRIOR_SELECTIVITY,
            overhead_s=few_s,
        )
        progress(number + 1, len(paths))
    return known


def warm_up(
    session: SparkSession,
    executor: Executor,
    paths: Sequence[Path],
    trains: Mapping[str, Trains],
    ends_at_s: float,
) -> None:
    """Runs what will run together, over and over: the JVM needs some hundred runs to be quick.

    Once at the least, so that no tuple waits for code to be generated.
    """
    together: dict[int, list[Path]] = {}
    for path in paths:
        together.setdefault(id(executor.prepared(path)), []).append(path)
    rounds = 0
    while not rounds or (together and time.perf_counter() < ends_at_s):
        for key, members in list(together.items()):
            _, lane = executor.evaluate(session, members, trains[members[0].stream])
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
