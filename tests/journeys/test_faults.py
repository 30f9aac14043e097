"""Disks fill up, directories go, files rot, clocks are set, queries never end: others go on."""

import contextlib
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from independent import committed_rows, expected_rows
from pyspark.sql import SparkSession
from sources import balanced, consume, gate_over, until, write_readings

from headgate import Headgate, Query, Sink, Stream
from headgate.errors import ConfigRefused, RecoveryRefused
from headgate.spark import calls as calls_module
from headgate.spark import engine as engine_module
from headgate.spark.clock import Clock
from headgate.workloads.forest import SCHEMA

pytestmark = [pytest.mark.spark, pytest.mark.slow]

HOT = "SELECT location, temperature, ts FROM sensors WHERE temperature > 30"
ALL = "SELECT * FROM sensors"
# A second and more a tuple, in code that nobody can interrupt.
ENDLESS = (
    "SELECT aggregate(sequence(1, 60000000), 0L, (a, n) -> a + n % 7) + temperature AS x"
    " FROM sensors"
)


def same(gate: Headgate, source: Path, **queries: str) -> None:
    for name, sql in queries.items():
        folder = Path(gate.query(name)._path.query.sink.path)
        assert committed_rows(folder) == expected_rows(sql, source), name


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of four megabytes, where the process may mount one."""
    folder = tmp_path / "small"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)]
    try:
        mounted = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        pytest.skip(f"no small disk: {error}")
    if mounted.returncode:
        pytest.skip(f"no small disk: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=False)


def fill(folder: Path) -> Path:
    """Takes all the room that is left."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))
    return ballast


def test_a_full_disk_under_a_sink_stops_its_query_alone(
    spark: SparkSession, tmp_path: Path, small_disk: Path
) -> None:
    offered = write_readings(tmp_path / "source", files=1, rows=50)
    sink = Sink(path=str(small_disk / "results"))

    def gate() -> Headgate:
        gate = gate_over(spark, tmp_path, {"hot": ("H", HOT)})
        gate.add_query(Query(name="all", sql=ALL, query_class="H", sink=sink))
        gate.start()
        return gate

    first = gate()
    consume(first, offered)
    ballast = fill(small_disk)
    offered += write_readings(tmp_path / "source", files=3, rows=50, first_file=1)
    until(lambda: first.query("all").exception() is not None, first)
    consume(first, offered, but=("all",))
    assert "No space left" in str(first.query("all").exception())
    first.stop()
    balanced(first)
    ballast.unlink()
    second = gate()
    consume(second, offered)
    second.stop()
    balanced(second)
    same(second, tmp_path / "source", hot=HOT, all=ALL)


def test_a_full_disk_under_the_state_loses_nothing(
    spark: SparkSession, tmp_path: Path, small_disk: Path
) -> None:
    offered = write_readings(tmp_path / "source", files=1, rows=50)

    def gate() -> Headgate:
        gate = gate_over(spark, tmp_path, {}, state=small_disk / "state")
        for name, sql in (("hot", HOT), ("all", ALL)):
            sink = Sink(path=str(tmp_path / name))
            gate.add_query(Query(name=name, sql=sql, query_class="H", sink=sink))
        gate.start()
        return gate

    first = gate()
    consume(first, offered)
    ballast = fill(small_disk)
    offered += write_readings(tmp_path / "source", files=4, rows=200, first_file=1)
    lines = first._engine._intake._poller.lines
    until(lambda: lines[0].failing, first)
    ballast.unlink()
    until(lambda: not lines[0].failing, first)
    with contextlib.suppress(Exception):
        first.stop()
    second = gate()
    consume(second, offered)
    second.stop()
    balanced(second)
    same(second, tmp_path / "source", hot=HOT, all=ALL)


def test_a_sink_directory_that_is_removed_is_made_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    offered = write_readings(tmp_path / "source", files=1, rows=50)
    gate = gate_over(spark, tmp_path, {"hot": ("H", HOT), "all": ("H", ALL)})
    gate.start()
    consume(gate, offered)
    shutil.rmtree(tmp_path / "state/results/all")
    write_readings(tmp_path / "source", files=1, rows=60, seed=4, first_file=1)
    consume(gate, offered + 60)
    gate.stop()
    same(gate, tmp_path / "source", hot=HOT)
    assert committed_rows(tmp_path / "state/results/all").total() == 60


def test_a_sink_directory_that_comes_back_shows_what_was_hidden_without_a_restart(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder, aside = tmp_path / "state/results/all", tmp_path / "aside"
    away = threading.Event()

    def reached(point: str) -> None:
        second = (folder / "_unfinished").glob("*-000000000001-*.parquet")
        if point == "step journalled" and any(second):
            folder.rename(aside)
            away.set()

    offered = write_readings(tmp_path / "source", files=1, rows=50)
    queries = {"hot": ("H", HOT), "all": ("H", ALL)}
    gate = gate_over(spark, tmp_path, queries, reached=reached)
    gate.start()
    consume(gate, offered)
    offered += write_readings(tmp_path / "source", files=1, rows=50, first_file=1)
    assert away.wait(60)
    consume(gate, offered)
    assert committed_rows(aside).total() == 50
    offered += write_readings(tmp_path / "source", files=1, rows=50, first_file=2)
    consume(gate, offered, but=("all",))
    gate.wait(2.0)
    assert gate.query("all").exception() is None
    assert not folder.exists()
    aside.rename(folder)
    until(lambda: committed_rows(folder).total() == offered, gate)
    gate.stop()
    balanced(gate)
    same(gate, tmp_path / "source", hot=HOT, all=ALL)


def test_a_sink_that_cannot_be_written_stops_its_query_alone(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A file in the directory's place: not even root can write there."""
    offered = write_readings(tmp_path / "source", files=1, rows=50)
    queries = {"hot": ("H", HOT), "all": ("H", ALL)}
    gate = gate_over(spark, tmp_path, queries)
    gate.start()
    consume(gate, offered)
    folder = tmp_path / "state/results/all"
    folder.rename(tmp_path / "aside")
    folder.write_text("in the way")
    offered += write_readings(tmp_path / "source", files=2, rows=50, first_file=1)
    consume(gate, offered, but=("all",))
    until(lambda: gate.query("all").exception() is not None, gate)
    gate.stop()
    balanced(gate)
    folder.unlink()
    (tmp_path / "aside").rename(folder)
    again = gate_over(spark, tmp_path, queries)
    again.start()
    consume(again, offered)
    again.stop()
    same(again, tmp_path / "source", hot=HOT, all=ALL)


def test_a_read_only_sink_stops_its_query_alone(
    spark: SparkSession, tmp_path: Path, small_disk: Path
) -> None:
    """A file system that is mounted anew, to be read only: not even root writes there."""

    def mount(how: str) -> None:
        subprocess.run(["mount", "-o", f"remount,{how}", str(small_disk)], check=True)

    offered = write_readings(tmp_path / "source", files=1, rows=50)
    sink = Sink(path=str(small_disk / "results"))

    def gate() -> Headgate:
        gate = gate_over(spark, tmp_path, {"hot": ("H", HOT)})
        gate.add_query(Query(name="all", sql=ALL, query_class="H", sink=sink))
        gate.start()
        return gate

    first = gate()
    consume(first, offered)
    mount("ro")
    offered += write_readings(tmp_path / "source", files=1, rows=50, first_file=1)
    until(lambda: first.query("all").exception() is not None, first)
    offered += write_readings(tmp_path / "source", files=1, rows=50, first_file=2)
    consume(first, offered, but=("all",))
    first.stop()
    balanced(first)
    message = str(first.query("all").exception())
    assert "query 'all' failed" in message
    assert "after 3 attempts" in message
    assert f"cannot be written to {sink.path}: Read-only file system" in message
    assert f"Fix: make the directory {sink.path} writable" in message
    second = gate()  # it is read-only still
    until(lambda: second.query("all").exception() is not None, second)
    second.stop()
    mount("rw")
    third = gate()
    consume(third, offered)
    third.stop()
    balanced(third)
    same(third, tmp_path / "source", hot=HOT, all=ALL)


def other_stream(gate: Headgate, folder: Path) -> None:
    options = {"path": str(folder)}
    gate.add_stream(Stream(name="others", format="parquet", options=options, schema=SCHEMA))
    gate.add_query(Query(name="others", sql="SELECT * FROM others", query_class="H"))


@pytest.mark.parametrize("lane", ["driver", pytest.param("job", marks=pytest.mark.long)])
def test_a_train_that_has_rotted_stops_the_queries_of_its_stream_alone(
    spark: SparkSession, tmp_path: Path, lane: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls_module, "PAUSE_S", 0.05)
    offered = write_readings(tmp_path / "source", files=2, rows=50)
    write_readings(tmp_path / "other", files=1, rows=50, seed=2)
    first = gate_over(spark, tmp_path, {"hot": ("H", HOT)})
    other_stream(first, tmp_path / "other")
    first.start()
    consume(first, offered, but=("others",))
    until(lambda: first.totals()["others"][0] == 50, first)
    first.stop()
    rotten = tmp_path / "state/log/sensors/000000000001.parquet"
    rotten.write_bytes(b"\x00" * rotten.stat().st_size)
    second = gate_over(spark, tmp_path, {"hot": ("H", HOT)}, lane=lane)
    other_stream(second, tmp_path / "other")
    second.add_query(Query(name="late", sql=ALL, query_class="H"))
    second.start()
    until(lambda: second.query("late").exception() is not None, second)
    write_readings(tmp_path / "other", files=1, rows=50, seed=3, first_file=1)
    until(lambda: second.totals()["others"][0] == 100, second)
    assert second.query("others").exception() is None
    second.stop()
    message = str(second.query("late").exception())
    assert "sensors" in message
    assert "train 1 " in message or rotten.name in message


def test_a_log_that_does_not_match_its_journal_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    offered = write_readings(tmp_path / "source", files=3, rows=50)
    gate = gate_over(spark, tmp_path, {"hot": ("H", HOT)})
    gate.start()
    consume(gate, offered)
    gate.stop()
    file = tmp_path / "state/log/sensors/000000000001.parquet"
    whole = file.read_bytes()
    for damage, found in (
        (lambda: file.write_bytes(whole[:-7]), f"found {len(whole) - 7} bytes"),
        (file.unlink, "found no such file"),
    ):
        damage()
        again = gate_over(spark, tmp_path, {"hot": ("H", HOT)})
        with pytest.raises(RecoveryRefused) as refused:
            again.start()
        message = str(refused.value)
        assert "train 1 of stream 'sensors'" in message
        assert f"expected {len(whole)} bytes in {file}" in message
        assert found in message
        assert "Fix: restore" in message
    file.write_bytes(whole)
    again = gate_over(spark, tmp_path, {"hot": ("H", HOT)})
    again.start()
    again.stop()
    same(again, tmp_path / "source", hot=HOT)


@pytest.mark.parametrize("jump_s", [-7200.0, 7200.0])
def test_a_clock_that_is_set_delays_nothing(
    spark: SparkSession, tmp_path: Path, jump_s: float
) -> None:
    jumped = threading.Event()
    tried: list[str] = []

    def reached(point: str) -> None:
        # The clock is set in the midst of the first call, which then fails and is tried again.
        if point == "results written" and not tried:
            tried.append(point)
            jumped.set()
            raise OSError("not yet")

    offered = write_readings(tmp_path / "source", files=2, rows=50)
    gate = gate_over(spark, tmp_path, {"hot": ("H", HOT), "all": ("N", ALL)}, reached=reached)
    clock = Clock(lambda: time.time() + (jump_s if jumped.is_set() else 0.0))
    began_s = time.monotonic()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(engine_module, "Clock", lambda: clock)
        gate.start()
    consume(gate, offered)
    report = gate.stop()
    assert tried
    assert report is not None
    most_s = [line.response_s.maximum for line in report.classes if line.response_s.count]
    assert len(most_s) == 2
    assert all(0 <= each < time.monotonic() - began_s for each in most_s)
    same(gate, tmp_path / "source", hot=HOT, all=ALL)


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


def test_a_job_that_never_ends_fails_alone(spark: SparkSession, tmp_path: Path) -> None:
    def doze(value: int) -> int:
        time.sleep(3600)
        return value

    spark.udf.register("doze", doze, "int")
    offered = write_readings(tmp_path / "source", files=2, rows=20)
    queries = {"hot": ("H", HOT), "all": ("H", ALL)}
    gate = gate_over(spark, tmp_path, queries, call_timeout_s=4.0)
    gate.add_query(
        Query(name="dozes", sql="SELECT doze(temperature) AS d FROM sensors", query_class="H")
    )
    gate.start()
    until(lambda: gate.query("dozes").exception() is not None, gate)
    offered += write_readings(tmp_path / "source", files=1, rows=20, first_file=2)
    consume(gate, offered, but=("dozes",))
    gate.stop()
    assert "it took longer than call_timeout_s, 4 s" in str(gate.query("dozes").exception())
    assert gate.query("all").exception() is None
    assert gate.totals()["dozes"] == (0, 0)
    balanced(gate)
    same(gate, tmp_path / "source", hot=HOT, all=ALL)


def test_an_expression_that_never_ends_fails_alone_and_commits_nothing_later(
    spark: SparkSession, tmp_path: Path
) -> None:
    offered = write_readings(tmp_path / "source", files=1, rows=20)
    queries = {"hot": ("H", HOT), "all": ("H", ALL), "endless": ("H", ENDLESS)}
    gate = gate_over(spark, tmp_path, queries, call_timeout_s=2.0, lane="driver", workers=1)
    gate.start()
    until(lambda: gate.query("endless").exception() is not None, gate)
    offered += write_readings(tmp_path / "source", files=1, rows=20, first_file=1)
    consume(gate, offered, but=("endless",))
    began_s = time.monotonic()
    gate.stop()
    assert time.monotonic() - began_s < 20
    assert "it took longer than call_timeout_s, 2 s" in str(gate.query("endless").exception())
    assert gate.totals()["endless"] == (0, 0)
    assert not list((tmp_path / "state/results/endless").glob("*.parquet"))
    balanced(gate)
    same(gate, tmp_path / "source", hot=HOT, all=ALL)


# Half a minute over the tuples of a rehearsal, and no more: nobody waits for it.
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
    def doze(value: int) -> int:  # a worker of Spark's has no module of tests
        time.sleep(3600)
        return value

    spark.udf.register("doze", doze, "int")
    offered = write_readings(tmp_path / "source", files=1, rows=20)
    queries = {"endless": ("H", sql), "hot": ("H", HOT), "all": ("H", ALL)}
    gate = gate_over(spark, tmp_path, queries, call_timeout_s=limit_s, rehearsal_s=1.0)
    told: list[tuple[int, int]] = []
    began_s = time.monotonic()
    gate.start(progress=lambda done, of: told.append((done, of)))
    assert time.monotonic() - began_s < 30
    assert told[0] == (1, 3)
    says = f"took longer than {limit_s:g} s over 5000 invented tuples"
    assert f"query 'endless' {says}" in caplog.text
    late = gate.add_query(Query(name="late", sql=sql, query_class="N"))
    assert f"query 'late' {says}" in caplog.text
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
    until(lambda: bool(gate._engine._calls.attempts), gate)
    gate.query("bad").stop()
    assert gate.drain(60)
    gate.stop()
    balanced(gate)
    same(gate, tmp_path / "source", hot=HOT)
