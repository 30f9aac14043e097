"""Queries and streams are added and dropped, and the policy changes, while other queries run."""

import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from faults import ALL, DRY, HOT, same
from independent import committed_rows, expected_rows
from kit.engines import engine_of
from kit.streams import file_stream
from pyspark.sql import SparkSession
from sources import balanced, consume, gate_over, until, write_readings

from headgate import Headgate, Query, Sink, Stream
from headgate.errors import ConfigRefused, QueryRefused, RecoveryRefused, UnknownName
from headgate.model.events import Event, NetworkChanged
from headgate.model.plan import Step
from headgate.policies import Policy, State, policies
from headgate.workloads.testbeds.forest import SCHEMA

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ON_SPARK = sorted(
    name
    for name, entry in policies().items()
    if "spark" in entry.engines and "query" in entry.levels
)


class Slips(Policy):
    """A policy whose every plan fails."""

    name = "slips"

    def plan(self, state: State, now_s: float) -> Sequence[Step]:
        raise ValueError("a slip of the pen")


def test_a_query_that_comes_later_sees_all_that_is_kept(
    spark: SparkSession, tmp_path: Path
) -> None:
    offered = write_readings(tmp_path / "source", files=2, rows=50)
    gate = gate_over(spark, tmp_path, {"hot": ("H", HOT)})
    gate.start()
    consume(gate, offered)
    handle = gate.add_query(Query(name="dry", sql=DRY, query_class="N"))
    offered += write_readings(tmp_path / "source", files=2, rows=50, first_file=2)
    consume(gate, offered)
    assert handle.isActive
    report = gate.stop()
    assert report is not None
    assert [line.name for line in report.queries] == ["hot", "dry"]
    assert [line.tuples_in for line in report.queries] == [200, 200]
    same(gate, tmp_path / "source", hot=HOT)
    same(gate, tmp_path / "source", dry=DRY)


def test_a_query_comes_when_the_others_have_passed_a_thousand_trains(
    spark: SparkSession, tmp_path: Path
) -> None:
    gate = Headgate(spark, state=tmp_path / "state", classes={"H": 1}, rehearsal_s=0)
    stream = Stream(
        name="s", format="python", schema="a INT", trigger_s=0, options={"rowsPerPoll": "1"}
    )
    gate.add_stream(stream, rows=lambda first: [{"a": n} for n in range(first, 1400)])
    gate.add_query(Query(name="first", sql="SELECT a FROM s WHERE a >= 0", query_class="H"))
    gate.start()
    consume(gate, 1400)
    gate.add_query(Query(name="late", sql="SELECT a FROM s WHERE a < 9", query_class="H"))
    consume(gate, 1400)
    gate.stop()
    balanced(gate)
    assert gate.accounts()["late"].arrived == 1400
    assert committed_rows(tmp_path / "state/results/late") == Counter((n,) for n in range(9))


def test_the_trains_that_a_query_begins_with_stay_until_it_is_planned(
    spark: SparkSession, tmp_path: Path
) -> None:
    offered = write_readings(tmp_path / "source", files=3, rows=50)
    gate = gate_over(spark, tmp_path, {"hot": ("H", HOT)}, retention_s=3600)
    dropped_for: list[NetworkChanged] = []

    def end_retention(event: Event) -> None:
        if isinstance(event, NetworkChanged):  # which the scheduler does not know yet
            dropped_for.append(event)
            engine_of(gate).log_space.retention_s = 0.0
            engine_of(gate).forget(0, 3)

    gate.start(listeners=[end_retention])
    consume(gate, offered)
    late = gate.add_query(Query(name="late", sql=ALL, query_class="N"))
    until(lambda: late.exception() is not None or gate.totals()["late"][0] == offered, gate)
    assert late.exception() is None
    assert dropped_for
    until(lambda: not list((tmp_path / "state/log/sensors").glob("*.parquet")), gate)
    gate.stop()
    same(gate, tmp_path / "source", late=ALL)


def test_a_query_that_is_refused_while_others_run_changes_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    offered = write_readings(tmp_path / "source", files=1, rows=50)
    gate = gate_over(spark, tmp_path, {"hot": ("H", HOT)})
    gate.start()
    with pytest.raises(QueryRefused, match="column `temprature` does not exist"):
        gate.add_query(Query(name="dry", sql="SELECT temprature FROM sensors", query_class="N"))
    with pytest.raises(UnknownName, match="there is no class 'X'"):
        gate.add_query(Query(name="dry", sql=DRY, query_class="X"))
    consume(gate, offered)
    gate.stop()
    assert [query.name for query in gate.queries] == ["hot"]
    same(gate, tmp_path / "source", hot=HOT)


def test_results_of_tuples_from_before_a_query_came_are_reported_apart(
    spark: SparkSession, tmp_path: Path
) -> None:
    slow = "SELECT length(sha2(location, 256)) AS n FROM sensors WHERE temperature > -100"
    counts = "SELECT count(*) AS n FROM sensors [ROWS 10]"
    late = {"late": ALL, "cut": slow, "counts": counts}
    write_readings(tmp_path / "source", files=2, rows=50)
    gate = gate_over(spark, tmp_path, {"hot": ("H", HOT)}, retention_s=3600)
    gate.start()
    consume(gate, 100)
    for name, sql in late.items():
        gate.add_query(Query(name=name, sql=sql, query_class="H", cut=name == "cut"))
    consume(gate, 100)
    write_readings(tmp_path / "source", files=1, rows=50, first_file=2)
    consume(gate, 150)
    rows = {row["query"]: row for row in gate.status()["queries"]}
    assert {name: rows[name]["backfilled"] for name in late} == {
        "late": 100, "cut": 100, "counts": 10,
    }  # fmt: skip
    assert rows["hot"]["backfilled"] == 0
    report = gate.stop()
    assert report is not None
    results = {line.name: line.response_s.count for line in report.queries}
    assert (results["late"], results["cut"], results["counts"]) == (50, 50, 5)
    assert gate.accounts()["late"].delivered == 150

    again = gate_over(spark, tmp_path, {"hot": ("H", HOT), "late": ("H", ALL)}, retention_s=3600)
    write_readings(tmp_path / "source", files=1, rows=50, first_file=3)
    again.start()
    consume(again, 200, but=("cut", "counts"))
    report = again.stop()
    assert report is not None
    line = next(line for line in report.queries if line.name == "late")
    assert (line.backfilled, line.response_s.count) == (0, 50)


def test_a_stream_that_cannot_begin_leaves_the_next_one_its_place(
    spark: SparkSession, tmp_path: Path
) -> None:
    offered = write_readings(tmp_path / "source", files=1, rows=50)
    write_readings(tmp_path / "other", files=1, rows=50, seed=2)

    def other(name: str) -> Stream:
        options = {"path": str(tmp_path / "other")}
        return Stream(name=name, format="parquet", options=options, schema=SCHEMA, ingest="spark")

    first = gate_over(spark, tmp_path, {"hot": ("H", HOT)})
    first.add_stream(other("others"))
    first.add_query(Query(name="old", sql="SELECT * FROM others", query_class="H"))
    first.start()
    consume(first, offered)
    first.stop()
    shutil.rmtree(tmp_path / "state/checkpoints/others")
    gate = gate_over(spark, tmp_path, {"hot": ("H", HOT)})
    gate.start()
    with pytest.raises(RecoveryRefused, match="stream 'others': expected the source's position"):
        gate.add_stream(other("others"))
    assert gate.status()["streams"] == ["sensors"]
    with pytest.raises(RecoveryRefused, match="stream 'others': expected the source's position"):
        gate.add_stream(other("others"))
    gate.add_stream(other("more"))
    gate.add_query(Query(name="new", sql="SELECT * FROM more", query_class="H"))
    consume(gate, offered)
    gate.stop()
    rows = committed_rows(tmp_path / "state/results/new")
    assert rows == expected_rows("SELECT * FROM sensors", tmp_path / "other")


def test_a_query_that_comes_with_another_text_is_refused_and_the_next_one_runs(
    spark: SparkSession, tmp_path: Path
) -> None:
    counts = "SELECT count(*) AS n FROM sensors [RANGE 1 SECOND SLIDE 1 SECOND]"
    tops = "SELECT max(temperature) AS t FROM sensors [RANGE 1 SECOND SLIDE 1 SECOND]"
    offered = write_readings(tmp_path / "source", files=2, rows=50)
    first = gate_over(spark, tmp_path, {"hot": ("H", HOT), "counts": ("H", counts)})
    first.start()
    consume(first, offered)
    first.stop()
    gate = gate_over(spark, tmp_path, {"hot": ("H", HOT)})
    gate.start()
    other = {"queries": {"new": {"class": "H", "sql": ALL}, "counts": {"class": "H", "sql": tops}}}
    with pytest.raises(RecoveryRefused, match="query 'counts': expected the text of the last run"):
        gate.add(other)
    with pytest.raises(RecoveryRefused, match="query 'counts': expected the text of the last run"):
        gate.add_query(Query(name="counts", sql=tops, query_class="H"))
    assert [query.name for query in gate.queries] == ["hot"]
    assert not engine_of(gate).parts.store.timelines
    gate.add_query(Query(name="tops", sql=tops, query_class="H"))
    offered += write_readings(tmp_path / "source", files=2, rows=50, first_file=2)
    consume(gate, offered, but=("counts",))
    gate.stop()
    rows = committed_rows(tmp_path / "state/results/tops")
    closed = (
        "SELECT max(temperature) FROM sensors WHERE ts < to_timestamp(3) GROUP BY epoch(ts)::INT"
    )
    assert rows == expected_rows(closed, tmp_path / "source")


def test_a_stream_that_comes_later_is_read_and_goes_when_nobody_reads_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    offered = write_readings(tmp_path / "source", files=1, rows=50)
    gate = gate_over(spark, tmp_path, {"hot": ("H", HOT)})
    gate.start()
    consume(gate, offered)
    write_readings(tmp_path / "other", files=1, rows=50, seed=2)
    options = {"path": str(tmp_path / "other")}
    gate.add_stream(Stream(name="others", format="parquet", options=options, schema=SCHEMA))
    gate.add_query(Query(name="others", sql="SELECT * FROM others", query_class="H"))
    consume(gate, offered)
    with pytest.raises(ConfigRefused, match="stream 'others': queries others must be dropped"):
        gate.drop_stream("others")
    gate.drop_query("others")
    gate.drop_stream("others")
    gate.stop()
    other = committed_rows(tmp_path / "state/results/others")
    assert other == expected_rows("SELECT * FROM sensors", tmp_path / "other")


@pytest.mark.parametrize("ingest", ["auto", pytest.param("spark", marks=pytest.mark.long)])
def test_a_dropped_stream_comes_back_and_its_log_goes_on(
    spark: SparkSession, tmp_path: Path, ingest: str
) -> None:
    offered = write_readings(tmp_path / "source", files=1, rows=50)
    gate = gate_over(spark, tmp_path, {"hot": ("H", HOT)})
    gate.start()
    write_readings(tmp_path / "other", files=1, rows=50, seed=2)

    def others(schema: str = SCHEMA) -> Stream:
        options = {"path": str(tmp_path / "other"), "maxFilesPerTrigger": "1"}
        return Stream(
            name="others", format="parquet", options=options, schema=schema, trigger_s=0.01,
            ingest=ingest,  # type: ignore[arg-type]
        )  # fmt: skip

    gate.add_stream(others())
    gate.add_query(Query(name="first", sql="SELECT * FROM others", query_class="H"))
    consume(gate, offered)
    gate.drop_query("first")
    gate.drop_stream("others")
    assert gate.status()["streams"] == ["sensors"]
    with pytest.raises(UnknownName, match="there is no stream 'others'"):
        gate.drop_stream("others")
    second = Query(name="second", sql="SELECT * FROM others", query_class="H")
    with pytest.raises(QueryRefused, match="stream `others` does not exist"):
        gate.add_query(second)
    with pytest.raises(RecoveryRefused, match="'others': expected the schema of its log"):
        gate.add_stream(others(schema="x INT"))
    write_readings(tmp_path / "other", files=1, rows=50, seed=2, first_file=1)
    gate.add_stream(others())
    gate.add_query(second)
    consume(gate, 100, but=("hot",))
    write_readings(tmp_path / "other", files=1, rows=50, seed=2, first_file=2)
    consume(gate, 150, but=("hot",))
    consume(gate, offered)
    gate.stop()
    rows = committed_rows(tmp_path / "state/results/second")
    assert rows == expected_rows("SELECT * FROM sensors", tmp_path / "other")
    same(gate, tmp_path / "source", hot=HOT)


def test_a_stream_that_comes_back_may_have_another_time(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "times").mkdir()
    seconds = [second * 1_000_000 for second in range(40)]
    columns = {"ts": seconds, "at": [2 * micros for micros in seconds]}
    kind = pa.timestamp("us", tz="UTC")
    times = pa.table({name: pa.array(values).cast(kind) for name, values in columns.items()})
    pq.write_table(times, tmp_path / "times" / "0.parquet")
    write_readings(tmp_path / "source", files=1, rows=50)
    gate = gate_over(spark, tmp_path, {"hot": ("H", HOT)}, retention_s=3600)
    gate.start()
    for name in ("ts", "at"):
        schema = "ts TIMESTAMP, at TIMESTAMP"
        gate.add_stream(file_stream("times", tmp_path / "times", schema, event_time=name))
        counts = "SELECT unix_seconds(window.end) AS e, count(*) AS n FROM times [RANGE 10 SECONDS]"
        gate.add_query(Query(name=f"by_{name}", sql=counts, query_class="H"))
        consume(gate, 40, but=("hot",))
        gate.drop_query(f"by_{name}")
        gate.drop_stream("times")
    gate.stop()
    results = tmp_path / "state/results"
    assert committed_rows(results / "by_ts") == Counter((e, 10) for e in (10, 20, 30))
    assert committed_rows(results / "by_at") == Counter((e, 5) for e in range(10, 80, 10))


def test_a_stream_and_a_query_that_need_functions_come_while_others_run(
    spark: SparkSession, tmp_path: Path
) -> None:
    offered = write_readings(tmp_path / "source", files=1, rows=20)
    gate = gate_over(spark, tmp_path, {"hot": ("H", HOT)})
    gate.start()
    delivered: list[int] = []
    stream = Stream(name="s", format="python", schema="a INT")
    gate.add_stream(stream, rows=lambda first: [{"a": n} for n in range(first, 20)])
    gate.add_query(
        Query(name="q", sql="SELECT a FROM s", query_class="H", sink=Sink(format="callback")),
        deliver=lambda table, key: delivered.extend(table["a"].to_pylist()),
    )
    consume(gate, offered)
    gate.stop()
    assert delivered == list(range(20))


def test_the_policy_changes_while_running_and_no_answer_does(
    spark: SparkSession, tmp_path: Path
) -> None:
    offered = write_readings(tmp_path / "source", files=1, rows=50)
    gate = gate_over(spark, tmp_path, {"hot": ("H", HOT), "dry": ("C", DRY), "all": ("N", ALL)})
    gate.start()
    for number, policy in enumerate([Slips(), *ON_SPARK]):
        gate.set_policy(policy)
        offered += write_readings(tmp_path / "source", files=1, rows=50, first_file=number + 1)
        consume(gate, offered)
        slipped = ", replaced by rr: ValueError: a slip of the pen"
        assert (slipped in gate.status()["policy"]) == (number == 0)
    report = gate.stop()
    assert report is not None
    policies_in_charge = [policy.split(",")[0] for policy in report.policy.split(", then ")]
    assert policies_in_charge == ["cqc", "slips", *ON_SPARK]
    for name, sql in (("hot", HOT), ("dry", DRY), ("all", ALL)):
        same(gate, tmp_path / "source", **{name: sql})


def test_rows_of_python_are_a_stream_that_goes_on_after_a_restart(
    spark: SparkSession, tmp_path: Path
) -> None:
    positions: list[int] = []

    def rows(first: int) -> list[dict[str, object]]:
        positions.append(first)
        return [{"a": n, "b": f"row {n}" if n != 3 else n} for n in range(first, 5 + first)]

    for expected in (5, 10):
        gate = Headgate(spark, state=tmp_path / "state", classes={"H": 1}, rehearsal_s=0)
        gate.add_stream(Stream(name="s", format="python", schema="a INT, b STRING"), rows=rows)
        gate.add_query(Query(name="q", sql="SELECT a, b FROM s WHERE a >= 0", query_class="H"))
        gate.start()
        # Row 3 becomes a dead letter: it has a number in a STRING column.
        consume(gate, expected - 1)
        gate.stop()
    assert positions == [0, 5]
    table = committed_rows(tmp_path / "state/results/q")
    assert sorted(row[0] for row in table) == [n for n in np.arange(10).tolist() if n != 3]
    (letter,) = (tmp_path / "state/dead-letters/s.jsonl").read_text().splitlines()
    assert '"place": "row 3"' in letter
