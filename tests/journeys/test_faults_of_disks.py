"""Disks fill up, directories vanish or cannot be written: nothing is lost, other queries go on."""

import contextlib
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from faults import ALL, HOT, same
from independent import committed_rows
from kit.engines import engine_of
from kit.terminal import Terminal
from pyspark.sql import SparkSession
from sources import balanced, consume, gate_over, until, write_readings

from headgate import Headgate, Query, Sink
from headgate.errors import QueryRefused
from headgate.model.events import ClockTicked

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a file system of four megabytes; skip the test if the process may not."""
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


@pytest.fixture
def gate(spark: SparkSession, tmp_path: Path, small_disk: Path) -> Callable[[], Headgate]:
    """Return a function that starts a Headgate with two queries, one of them on the small disk."""

    def started() -> Headgate:
        gate = gate_over(spark, tmp_path, {"hot": ("H", HOT)})
        sink = Sink(path=str(small_disk / "results"))
        gate.add_query(Query(name="all", sql=ALL, query_class="H", sink=sink))
        gate.start()
        return gate

    return started


def fill(folder: Path) -> Path:
    """Fill the disk of a folder with a file; return the file."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))
    return ballast


def test_a_start_on_a_full_disk_is_answered_with_a_sentence(
    terminal: Terminal, small_disk: Path
) -> None:
    fill(small_disk)
    file = Path(__file__).parents[2] / "examples" / "forest.yaml"
    done = terminal.run("run", str(file), "--state", str(small_disk / "state"))
    assert done.returncode == 1
    assert "no space left on device.\nFix: make room on its disk\n" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_full_disk_under_a_sink_stops_its_query_alone(
    tmp_path: Path, small_disk: Path, gate: Callable[[], Headgate]
) -> None:
    offered = write_readings(tmp_path / "source", files=1, rows=50)
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
    same(second, tmp_path / "source", {"all": small_disk / "results"}, hot=HOT, all=ALL)


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
    lines = engine_of(first).parts.ingest.pollers[0].lines
    until(lambda: lines[0].trouble, first)
    ballast.unlink()
    consume(first, offered)
    first.stop()
    balanced(first)
    folders = {name: tmp_path / name for name in ("hot", "all")}
    same(first, tmp_path / "source", folders, hot=HOT, all=ALL)


def test_a_journal_that_cannot_be_written_for_a_while_ends_no_run(
    spark: SparkSession, tmp_path: Path
) -> None:
    offered = write_readings(tmp_path / "source", files=3, rows=50)
    gate = gate_over(spark, tmp_path, {"hot": ("H", HOT), "all": ("N", ALL)}, retention_s=0)
    gate.start()
    consume(gate, offered)
    engine = engine_of(gate)
    engine.parts.journal.read("PRAGMA query_only = ON", ())
    dropping = threading.Thread(target=gate.drop_query, args=("hot",))
    dropping.start()
    # This tick makes the engine's loop drop the trains that all queries have passed.
    engine.parts.events.put(ClockTicked(engine.now_s() + 10))
    lines = engine.parts.ingest.pollers[0].lines
    offered += write_readings(tmp_path / "source", files=1, rows=50, first_file=3)
    until(lambda: lines[0].trouble, gate)
    engine.parts.journal.read("PRAGMA query_only = OFF", ())
    consume(gate, offered, but=("hot",))
    dropping.join(30)
    gate.stop()
    assert [query.name for query in gate.queries] == ["all"]
    assert set(gate.totals()) == {"all"}
    assert not list((tmp_path / "state/log/sensors").glob("*.parquet"))
    same(gate, tmp_path / "source", all=ALL)


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
        second = (folder / "_unfinished").glob("*-000000000001-*")
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
    """Replace the directory by a file, so that not even root can write there."""
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
    tmp_path: Path, small_disk: Path, gate: Callable[[], Headgate]
) -> None:
    """Remount the file system read-only, so that not even root can write there."""

    def mount(mode: str) -> None:
        subprocess.run(["mount", "-o", f"remount,{mode}", str(small_disk)], check=True)

    offered = write_readings(tmp_path / "source", files=1, rows=50)
    first = gate()
    consume(first, offered)
    mount("ro")
    offered += write_readings(tmp_path / "source", files=1, rows=50, first_file=1)
    until(lambda: first.query("all").exception() is not None, first)
    offered += write_readings(tmp_path / "source", files=1, rows=50, first_file=2)
    consume(first, offered, but=("all",))
    first.stop()
    balanced(first)
    results = small_disk / "results"
    message = str(first.query("all").exception())
    assert "query 'all' failed" in message
    assert "after 3 attempts" in message
    assert f"cannot be written to {results}: Read-only file system" in message
    assert f"Fix: make the directory {results} writable" in message
    second = gate()  # the disk is still read-only
    until(lambda: second.query("all").exception() is not None, second)
    second.stop()
    mount("rw")
    shutil.rmtree(results)  # consumed: at the next start the directory cannot be made again
    mount("ro")
    third = gate()
    assert third.query("all").state == "FAILED"
    message = str(third.query("all").exception())
    assert f"sink path '{results}' cannot be written: Read-only file system" in message
    assert "then run `headgate restart all`" in message
    offered += write_readings(tmp_path / "source", files=1, rows=50, first_file=3)
    consume(third, offered, but=("all",))
    with pytest.raises(QueryRefused, match="cannot be written: Read-only file system"):
        third.restart_query("all")
    assert third.query("all").state == "FAILED"
    mount("rw")
    third.restart_query("all")
    consume(third, offered)
    report = third.stop()
    assert report is not None
    assert not report.errors
    balanced(third)
    same(third, tmp_path / "source", hot=HOT)
    assert committed_rows(results).total() == offered - 50  # the first file was consumed
