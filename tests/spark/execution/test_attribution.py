"""The cost of a fused call is split among its queries: each share is the query's cost alone."""

import time
from collections.abc import Sequence
from pathlib import Path as File

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from headgate.model.events import StepFinished
from headgate.model.network.network import Network, Path
from headgate.model.network.unit_table import UnitTable, unit_table
from headgate.model.network.units import units_of
from headgate.model.plan import BoxCall
from headgate.model.query import Query, QueryClass, Sink
from headgate.model.stream import ARRIVED_AT, Stream
from headgate.runtime.members.query_paths import segments_of
from headgate.scheduler.statistics import Statistics
from headgate.spark.execution.executor import Executor
from headgate.spark.execution.warm_up import WarmUp
from headgate.spark.journal.journal import Journal
from headgate.spark.jvm.lane.plan_runner import DriverLane
from headgate.spark.jvm.query.analysis import Analyst
from headgate.spark.jvm.session import own_session
from headgate.spark.log.byte_cache import ByteCache
from headgate.spark.log.stream_log import StreamLog
from headgate.spark.log.trains import Trains
from headgate.spark.sinks.files.file_sink import FileSink
from headgate.workloads.testbeds.forest import SCHEMA, sensor_readings

pytestmark = [pytest.mark.spark, pytest.mark.long]

SIZES = (500, 2000, 6000)
TERMS = (3, 7, 18)
"""Nested hashes per query: they set its cost. Spark generates code for hashes. What it interprets,
such as a lambda, costs more the more of its kind the JVM has seen."""


def paths_of(spark: SparkSession, folder: File) -> tuple[Path, ...]:
    analyst = Analyst(own_session(spark))
    schema = spark.createDataFrame([], SCHEMA).schema
    analyst.add_stream("s", schema)
    paths = []
    for terms in TERMS:
        hashes = f"concat(location, '{terms}')"
        for _ in range(terms):
            hashes = f"sha2({hashes}, 256)"
        sql = f"SELECT location FROM s WHERE {hashes} > '1'"
        sink = Sink(path=str(folder / f"q{terms}"))
        query = Query(name=f"q{terms}", sql=sql, query_class="H", sink=sink)
        streams = [Stream(name="s", format="rate")]
        paths += segments_of(query, analyst, {"s": schema.names}, streams)[1]
    return tuple(paths)


def trains_of(log: StreamLog, rows: int) -> Trains:
    table = pa.Table.from_batches([sensor_readings(1, 0, np.arange(rows) / 1000)])
    table = table.append_column(ARRIVED_AT, pa.array(np.zeros(rows))).cast(log.arrow_schema)
    return Trains(log.schema, [], rows, lambda: table)


def learn(
    statistics: Statistics, table: UnitTable, units: Sequence[int], rows: int, took_s: float
) -> None:
    nothing, outs = tuple(np.zeros(0) for _ in units), (0,) * len(units)
    call = BoxCall(0, tuple(units), 0, 0, 1, rows)
    statistics.learn(table, StepFinished(0.0, call, took_s, outs, nothing, lane="driver"))


def test_shares_of_fused_members_agree_with_solo_runs(spark: SparkSession, tmp_path: File) -> None:
    paths = paths_of(spark, tmp_path)
    network = Network(
        (Stream(name="s", format="rate"),), (QueryClass(name="H", priority=1.0),), paths
    )
    journal = Journal(tmp_path / "state")
    schema = spark.createDataFrame([], SCHEMA).schema
    log = StreamLog(tmp_path / "state", "s", journal, schema, ByteCache(lambda: 1 << 20))
    sinks = {path.query.name: FileSink(path.query.sink) for path in paths}
    driver = DriverLane(own_session(spark), tmp_path)
    executor = Executor(journal, {"s": log}, sinks, lambda point: None, driver)
    executor.arrangement.arrange(paths, lambda path: False)

    def took_s(units: Sequence[int], rows: int) -> float:
        chosen, trains, durations_s = [paths[unit] for unit in units], trains_of(log, rows), []
        for _ in range(4):
            began_s = time.perf_counter()
            executor.evaluate(spark, chosen, trains, "driver")
            durations_s.append(time.perf_counter() - began_s)
        return min(durations_s)  # the slower ones were disturbed, or compiled code

    # Warm up all first: the JVM compiles the code of one query better while it knows no other.
    for _ in range(20):
        for units in ([0], [1], [2], [0, 1, 2]):
            chosen = [paths[unit] for unit in units]
            executor.evaluate(spark, chosen, trains_of(log, 2000), "driver")
    rehearsal = WarmUp(spark, executor, tmp_path / "rehearsal")
    rehearsed = rehearsal.of_all(paths, {}, 10.0, lambda done, new: None)
    executor.arrangement.arrange(paths, lambda path: False)  # here they run together, costly or not
    table = unit_table(units_of(network), rehearsed)
    statistics, least_s = Statistics(table), np.full((len(SIZES), len(paths)), np.inf)
    for _ in range(6):  # by turns, so that other load on the machine affects both alike
        for size, rows in enumerate(SIZES):
            for unit in range(len(paths)):
                least_s[size, unit] = min(least_s[size, unit], took_s([unit], rows))
            learn(statistics, table, [0, 1, 2], rows, took_s([0, 1, 2], rows))
    journal.close()
    alone_s = (least_s[-1] - least_s[0]) / (SIZES[-1] - SIZES[0])
    print(f"rehearsed: {[query.cost_s for query in rehearsed.values()]}")
    print(f"alone: {alone_s}")
    print(f"fused: {table['tuple_cost_s']}")
    assert table["tuple_cost_s"] == pytest.approx(alone_s, rel=0.25)
