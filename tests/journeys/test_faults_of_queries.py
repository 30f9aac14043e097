"""Queries that never end, fail or output too many rows: the others go on."""

import threading
import time
from pathlib import Path

import pytest
from faults import ALL, HOT, same
from independent import committed_rows, expected_rows
from kit.engines import engine_of
from pyspark.sql import SparkSession
from sources import balanced, consume, gate_over, until, write_readings

from headgate import Headgate, Query, Sink
from headgate.errors import ConfigRefused, StreamFailed
from headgate.model.events import Event, UnitFailed
from headgate.spark.execution import calls as calls_module

pytestmark = [pytest.mark.spark, pytest.mark.slow]

# More than a second per tuple, in code that nobody can interrupt.
ENDLESS = (
    "SELECT aggregate(sequence(1, 60000000), 0L, (a, n) -> a + n % 7) + temperature AS x"
    " FROM sensors"
)


def test_a_query_that_makes_ten_rows_of_one_does_not_stop_the_others(
    spark: SparkSession, tmp_path: Path
) -> None:
    offered = write_readings(tmp_path / "source", files=4, rows=500)
    many = "SELECT location, explode(sequence(1, 10)) AS n FROM sensors"
    gate = gate_over(spark, tmp_path, {"hot": ("H", HOT), "many": ("N", many)})
    gate.start()
    consume(gate, offered)
    gate.stop()
    balanced(gate)
    same(gate, tmp_path / "source", hot=HOT)
    assert committed_rows(tmp_path / "state/results/many").total() == 10 * offered


def test_no_query_is_blamed_for_a_cast_of_a_neighbor_that_is_gone(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Drop a query that failed and add it again, mended, while the others share calls with it."""
    source = tmp_path / "source"
    offered = write_readings(source, files=2, rows=50)
    texts = {
        f"q{n}": f"SELECT location, temperature + {n} AS t FROM sensors WHERE temperature > {n}"
        for n in range(9)
    }
    texts["cast"] = "SELECT try_cast(location AS INT) AS n FROM sensors"
    first = {name: ("N", sql) for name, sql in list(texts.items())[:7]}
    gate = gate_over(spark, tmp_path, first)
    gate.start()
    for name in ("q7", "q8"):
        gate.add_query(Query(name=name, sql=texts[name], query_class="N"))
    gate.set_policy("amos(dwell_s=0.2)")
    gate.drop_query("q0")
    bad = texts["cast"].replace("try_cast", "CAST")
    gate.add_query(Query(name="cast", sql=bad, query_class="N"))
    until(lambda: gate.query("cast").exception() is not None, gate)
    gate.drop_query("cast")
    sink = Sink(path=str(tmp_path / "mended"))
    gate.add_query(Query(name="cast", sql=texts["cast"], query_class="N", sink=sink))
    offered += write_readings(source, files=2, rows=50, first_file=2)
    consume(gate, offered)
    assert {query.name: query.exception() for query in gate.queries} == dict.fromkeys(
        [*(f"q{n}" for n in range(1, 9)), "cast"]
    )
    gate.stop()
    balanced(gate)
    same(gate, source, **{name: texts[name] for name in texts if name not in ("q0", "cast")})
    assert committed_rows(tmp_path / "mended") == expected_rows(texts["cast"], source)


def test_a_query_that_failed_and_resumes_after_retention_tells_of_the_gap(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Use no retention: the log does not wait for a failed query and drops what others passed."""
    offered = write_readings(tmp_path / "source", files=3, rows=50)
    queries = {"all": ("H", ALL), "bad": ("H", "SELECT CAST(location AS INT) AS n FROM sensors")}
    gate = gate_over(spark, tmp_path, queries, retention_s=0)
    gate.start()
    until(lambda: gate.query("bad").exception() is not None, gate)
    consume(gate, offered, but=("bad",))
    until(lambda: not list((tmp_path / "state/log/sensors").glob("*.parquet")), gate)
    gate.stop()
    again = gate_over(spark, tmp_path, queries, retention_s=0)
    again.start()
    again.stop()
    assert f"'bad' was away too long: retention has dropped {offered} tuples" in caplog.text
    assert again.accounts()["bad"].missed == offered
    balanced(again)


def test_calls_that_never_end_fail_alone_and_commit_nothing_later(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Keep both workers busy: one with a job, the other with an expression in the driver."""

    def doze(value: int) -> int:
        time.sleep(3600)
        return value

    spark.udf.register("doze", doze, "int")
    offered = write_readings(tmp_path / "source", files=1, rows=6)
    queries = {
        "hot": ("H", HOT),
        "all": ("H", ALL),
        "dozes": ("H", "SELECT doze(temperature) AS d FROM sensors"),
        "endless": ("H", ENDLESS),
    }
    gate = gate_over(spark, tmp_path, queries, call_timeout_s=2.0, lane="driver", workers=2)
    gate.start()
    without_end = ("dozes", "endless")
    for name in without_end:
        until(lambda name=name: gate.query(name).exception() is not None, gate)
    offered += write_readings(tmp_path / "source", files=1, rows=6, first_file=1)
    consume(gate, offered, but=without_end)
    began_s = time.monotonic()
    gate.stop()
    assert time.monotonic() - began_s < 20
    for name in without_end:
        error = str(gate.query(name).exception())
        assert "the call took longer than call_timeout_s, 2 s" in error
        assert gate.totals()[name] == (0, 0)
        assert not list((tmp_path / "state/results" / name).glob("*.parquet"))
    assert gate.query("all").exception() is None
    balanced(gate)
    same(gate, tmp_path / "source", hot=HOT, all=ALL)


def test_a_run_that_drains_ends_though_a_source_dies_meanwhile(
    spark: SparkSession, tmp_path: Path
) -> None:
    write_readings(tmp_path / "source", files=1, rows=20)
    commits, goes_on = threading.Event(), threading.Event()

    def hold(point: str) -> None:
        if point == "results written":
            commits.set()
            assert goes_on.wait(60)

    gate = gate_over(spark, tmp_path, {"all": ("H", ALL)}, reached=hold)
    gate.start()
    until(commits.is_set, gate)
    engine_of(gate).drain()
    failures = engine_of(gate).parts.ingest.pollers[0].failed
    failures.append(StreamFailed(stream="sensors", cause="records are gone"))
    until(lambda: not failures, gate)
    goes_on.set()
    assert gate.wait(30)
    gate.stop()
    same(gate, tmp_path / "source", all=ALL)


def test_a_stop_takes_no_ten_seconds_though_a_call_and_a_receiver_never_end(
    spark: SparkSession, tmp_path: Path
) -> None:
    offered, released = write_readings(tmp_path / "source", files=1, rows=6), threading.Event()
    gate = gate_over(spark, tmp_path, {}, lane="driver")
    gate.add_query(
        Query(name="all", sql=ALL, query_class="H", sink=Sink(format="callback")),
        deliver=lambda table, key: released.wait(60),
    )
    gate.add_query(Query(name="endless", sql=ENDLESS, query_class="H"))
    gate.start()
    until(lambda: gate.query("endless").state == "RUNNING", gate)
    consume(gate, offered, but=("endless",))
    began_s = time.monotonic()
    gate.stop()
    assert time.monotonic() - began_s < 10
    released.set()
    assert gate.totals()["endless"] == (0, 0)
    balanced(gate)


# About half a minute over the tuples of a rehearsal; not longer, as nothing can end the call.
SLOW = ENDLESS.replace("60000000", "16000000")


@pytest.mark.parametrize(
    ("sql", "limit_s"),
    [
        pytest.param(SLOW, 1.0, id="expression", marks=pytest.mark.long),
        pytest.param(
            "SELECT doze(temperature) AS d FROM sensors", 4.0, id="job", marks=pytest.mark.long
        ),
    ],
)
def test_a_query_that_never_ends_in_rehearsal_keeps_nobody_from_starting(
    spark: SparkSession, tmp_path: Path, sql: str, limit_s: float, caplog: pytest.LogCaptureFixture
) -> None:
    def doze(value: int) -> int:  # nested, because Spark's Python worker cannot import this module
        time.sleep(3600)
        return value

    spark.udf.register("doze", doze, "int")
    offered = write_readings(tmp_path / "source", files=1, rows=20)
    queries = {"endless": ("H", sql), "hot": ("H", HOT), "all": ("H", ALL)}
    gate = gate_over(spark, tmp_path, queries, call_timeout_s=limit_s, rehearsal_s=1.0)
    progress: list[tuple[int, int]] = []
    began_s = time.monotonic()
    gate.start(progress=lambda done, total: progress.append((done, total)))
    assert time.monotonic() - began_s < 30
    assert progress[0] == (1, 3)
    message = f"took longer than {limit_s:g} s over 5000 invented tuples"
    assert f"query 'endless' {message}" in caplog.text
    late = gate.add_query(Query(name="late", sql=sql, query_class="N"))
    assert f"query 'late' {message}" in caplog.text
    consume(gate, offered, but=("endless", "late"))
    for handle in (gate.query("endless"), late):
        until(lambda handle=handle: handle.exception() is not None, gate)  # type: ignore[misc]
        assert f"longer than call_timeout_s, {limit_s:g} s" in str(handle.exception())
    gate.stop()
    balanced(gate)
    same(gate, tmp_path / "source", hot=HOT, all=ALL)


def test_a_limit_of_nothing_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(ConfigRefused, match="call_timeout_s is 0, but must be above 0 seconds"):
        Headgate(spark, state=tmp_path, call_timeout_s=0)


def test_a_run_ends_though_a_query_that_is_tried_again_was_stopped(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls_module, "PAUSE_S", 3600.0)
    write_readings(tmp_path / "source", files=1, rows=20)
    bad = "SELECT CAST(location AS INT) AS n FROM sensors"
    gate = gate_over(spark, tmp_path, {"hot": ("H", HOT), "bad": ("H", bad)})
    gate.start()
    until(lambda: bool(engine_of(gate).parts.calls.attempts), gate)
    gate.query("bad").stop()
    assert gate.drain(60)
    gate.stop()
    balanced(gate)
    same(gate, tmp_path / "source", hot=HOT)


@pytest.mark.long
def test_calls_that_hang_on_all_cores_end_together_and_those_beside_them_are_not_blamed(
    spark: SparkSession, tmp_path: Path
) -> None:
    def doze(value: int) -> int:
        time.sleep(3600)
        return value

    failed_at_s: dict[int, float] = {}

    def hear(event: Event) -> None:
        if isinstance(event, UnitFailed):
            failed_at_s[event.unit] = time.monotonic()

    spark.udf.register("doze", doze, "int")
    spark.udf.register("same", lambda value: value, "int")
    offered = write_readings(tmp_path / "source", files=1, rows=20)
    limit_s = 6.0
    gate = gate_over(spark, tmp_path, {"hot": ("H", HOT)}, call_timeout_s=limit_s, workers=3)
    hang = ("temperature", "humidity")
    # All three start at once; the two that hang take both cores.
    for name in (*hang, "well"):
        sql = f"SELECT same({hang[0]}) AS x FROM sensors"
        sql = sql if name == "well" else f"SELECT doze({name}) AS x FROM sensors"
        gate.add_query(Query(name=name, sql=sql, query_class="H"))
    began_s = time.monotonic()
    gate.start(listeners=[hear])
    until(lambda: all(gate.query(name).exception() is not None for name in hang), gate)
    first_s, last_s = sorted(failed_at_s.values())
    assert last_s - first_s < limit_s + 2  # a call of an earlier test may hold a core for a while
    assert last_s - began_s < 3 * limit_s
    offered += write_readings(tmp_path / "source", files=1, rows=20, first_file=1)
    consume(gate, offered, but=hang)
    gate.stop()
    assert gate.query("well").exception() is None
    balanced(gate)
    same(gate, tmp_path / "source", hot=HOT)
    assert committed_rows(tmp_path / "state/results/well").total() == offered
