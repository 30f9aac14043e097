"""The budgets of memory and log hold: sources wait, passed trains are dropped, tuples are shed."""

import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from independent import committed_rows, expected_rows
from kit.engines import engine_of
from pyspark.sql import SparkSession
from sources import balanced, consume, gate_over, until, write_readings

from headgate import Headgate, Query, Stream
from headgate.model.events import Event, StepStarted
from headgate.model.plan import BoxCall
from headgate.model.settings import Settings
from headgate.workloads.testbeds.forest import SCHEMA, sensor_readings

pytestmark = [pytest.mark.spark, pytest.mark.slow]

HOT = "SELECT location, temperature, ts FROM sensors WHERE temperature > 30"
ALL = "SELECT * FROM sensors"
# A few milliseconds per tuple.
SLOW = (
    "SELECT location, aggregate(sequence(1, 20000), 0D, (a, n) -> a + n * temperature) AS x"
    " FROM sensors"
)
# About a millisecond per tuple, also in DuckDB.
FAR = "levenshtein(repeat(md5(location), 20), repeat(md5(concat(location, 'x')), 20))"


def most_used(gate: Headgate, offered: int, but: tuple[str, ...] = ()) -> float:
    """Wait until all is consumed; return the largest share of the log's budget seen meanwhile."""
    most = 0.0
    for _ in range(4000):
        totals = gate.totals()
        most = max(most, gate.used["log"])
        if all(totals[name][0] >= offered for name in totals if name not in but):
            return most
        gate.wait(0.02)
    raise AssertionError(f"not consumed in time: {gate.totals()} of {offered}")


def test_a_small_log_makes_the_source_wait_and_loses_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    offered = write_readings(tmp_path / "source", files=25, rows=100)
    queries = {"hot": ("H", HOT), "all": ("N", ALL)}
    gate = gate_over(spark, tmp_path, queries, log_bytes=20_000, retention_s=3600)
    gate.start()
    most = most_used(gate, offered)
    gate.stop()
    one_train = 4_000 / 20_000
    assert most <= 1.0 + one_train
    for name, sql in (("hot", HOT), ("all", ALL)):
        committed = committed_rows(tmp_path / "state/results" / name)
        assert committed == expected_rows(sql, tmp_path / "source")


def test_tuples_from_the_future_do_not_fill_the_log_for_ever(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for number in range(10):
        batch = sensor_readings(1, number * 100, np.arange(100) * 0.001 + 4e9 + number)
        pq.write_table(pa.Table.from_batches([batch]), source / f"{number:04d}.parquet")
    gate = Headgate(
        spark, state=tmp_path / "state", classes={"H": 1}, rehearsal_s=0, log_bytes=12_000
    )
    gate.add_stream(Stream(
        name="sensors", format="parquet", schema=SCHEMA, arrival_time="ts", trigger_s=0.01,
        options={"path": str(source), "maxFilesPerTrigger": "1"},
    ))  # fmt: skip
    gate.add_query(Query(name="all", sql=ALL, query_class="H"))
    gate.start()
    consume(gate, 1000)
    gate.stop()
    assert committed_rows(tmp_path / "state/results/all") == expected_rows(ALL, source)


def test_memory_is_given_back_also_while_the_log_is_full(
    spark: SparkSession, tmp_path: Path
) -> None:
    offered = write_readings(tmp_path / "source", files=2, rows=100)
    commits, goes_on = threading.Event(), threading.Event()

    def hold(point: str) -> None:
        if point == "results written":
            commits.set()
            assert goes_on.wait(60)

    gate = gate_over(spark, tmp_path, {"all": ("N", ALL)}, reached=hold)
    gate.start()
    until(commits.is_set, gate)
    store, budget = engine_of(gate).parts.store, engine_of(gate).budget
    budget.settings = Settings(memory_bytes=store.memory_bytes, log_bytes=1)
    until(lambda: store.memory_bytes == 0, gate, 20)
    assert gate.used["log"] > 1
    budget.settings = Settings()
    goes_on.set()
    consume(gate, offered)
    gate.stop()


def test_a_run_ends_though_a_batch_of_structured_streaming_waits_for_room(
    spark: SparkSession, tmp_path: Path
) -> None:
    def doze(value: int) -> int:
        time.sleep(3600)
        return value

    spark.udf.register("doze", doze, "int")
    write_readings(tmp_path / "source", files=3, rows=20)
    gate = Headgate(spark, state=tmp_path / "state", classes={"H": 1}, rehearsal_s=0, log_bytes=100)
    options = {"path": str(tmp_path / "source"), "maxFilesPerTrigger": "1"}
    gate.add_stream(
        Stream(name="sensors", format="parquet", options=options, schema=SCHEMA, ingest="spark")
    )
    slow = "SELECT doze(temperature) AS d FROM sensors"
    gate.add_query(Query(name="slow", sql=slow, query_class="H"))
    gate.start()
    until(lambda: gate.used["log"] > 1 and gate.query("slow").state == "RUNNING", gate)
    began_s = time.monotonic()
    gate.stop()
    assert time.monotonic() - began_s < 15
    assert gate.accounts()["slow"].queued == 20


def test_tuples_are_shed_only_where_it_is_allowed_and_all_are_accounted_for(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "source").mkdir()
    gate = gate_over(spark, tmp_path, {"hot": ("H", HOT)}, log_bytes=10_000, retention_s=0)
    gate.add_query(Query(name="slow", sql=SLOW, query_class="N", allows_shedding=True))
    gate.start()
    offered = write_readings(tmp_path / "source", files=16, rows=40)
    most_used(gate, offered, but=("slow",))
    gate.drain(60)
    report = gate.stop()
    assert report is not None
    accounts = gate.accounts()
    slow, hot = accounts["slow"], accounts["hot"]
    assert hot.shed == 0
    assert slow.shed > 0
    assert slow.arrived == slow.delivered + slow.filtered + slow.queued + slow.shed == offered
    assert [line.shed for line in report.queries] == [0, slow.shed]
    consumed = committed_rows(tmp_path / "state/results/slow")
    assert consumed.total() == slow.delivered
    hot_rows = committed_rows(tmp_path / "state/results/hot")
    assert hot_rows == expected_rows(HOT, tmp_path / "source")


@pytest.mark.parametrize("ingest", ["auto", "spark"])
def test_a_call_after_a_restart_takes_no_more_than_memory_allows(
    spark: SparkSession, tmp_path: Path, ingest: str
) -> None:
    offered = write_readings(tmp_path / "source", files=4, rows=2000)
    counts = "SELECT count(*) AS n FROM sensors [RANGE 1 SECOND SLIDE 1 SECOND]"
    calls: list[BoxCall] = []

    def hear(event: Event) -> None:
        if isinstance(event, StepStarted):
            calls.append(event.call)

    for queries in ({"hot": HOT}, {"hot": HOT, "all": ALL, "counts": counts}):
        # An eighth of the memory, divided by two workers, is less than two trains need.
        gate = Headgate(
            spark, state=tmp_path / "state", classes={"H": 1}, rehearsal_s=0, memory_bytes=2 << 20
        )
        options = {"path": str(tmp_path / "source"), "maxFilesPerTrigger": "1"}
        gate.add_stream(Stream(
            name="sensors", format="parquet", options=options, schema=SCHEMA, event_time="ts",
            quiet_s=None, ingest=ingest,  # type: ignore[arg-type]
        ))  # fmt: skip
        for name, sql in queries.items():
            gate.add_query(Query(name=name, sql=sql, query_class="H"))
        calls.clear()
        gate.start(listeners=[hear])
        consume(gate, offered)
        gate.stop()
    assert sum(call.tuples for call in calls) == 2 * offered
    assert {call.tuples for call in calls} == {2000}


def test_what_waits_between_segments_is_in_the_log_and_takes_no_memory(
    spark: SparkSession, tmp_path: Path
) -> None:
    sql = f"SELECT {FAR} AS far, temperature FROM sensors WHERE temperature > 3"
    offered = write_readings(tmp_path / "source", files=12, rows=100)
    queries = {"hot": ("H", HOT)}
    gate = gate_over(spark, tmp_path, queries, train_tuples=100, memory_bytes=40_000)
    gate.add_query(Query(name="slow", sql=sql, query_class="N", cut=True))
    gate.start()
    queue = tmp_path / "state/log/slow__rest"
    until(lambda: queue.is_dir() and any(queue.iterdir()), gate)
    consume(gate, offered)
    gate.stop()
    for name, text in (("hot", HOT), ("slow", sql)):
        rows = committed_rows(tmp_path / "state/results" / name)
        assert rows == expected_rows(text, tmp_path / "source"), name
    balanced(gate)


def test_a_budget_of_nothing_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="log_bytes is 0, but must be above 0 bytes"):
        Headgate(spark, state=tmp_path, log_bytes=0)
