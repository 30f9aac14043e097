"""Log files are damaged or missing, clocks are set: Headgate reports it, other queries go on."""

import threading
import time
from pathlib import Path
from typing import Any

import pytest
from faults import ALL, HOT, same
from pyspark.sql import SparkSession
from sources import consume, gate_over, until, write_readings

from headgate import Headgate, Query, Sink, Stream
from headgate.errors import RecoveryRefused
from headgate.spark.clock import Clock
from headgate.spark.engine import parts as parts_module
from headgate.spark.execution import calls as calls_module
from headgate.workloads.testbeds.forest import SCHEMA

pytestmark = [pytest.mark.spark, pytest.mark.slow]


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
    data = bytearray(rotten.read_bytes())
    data[len(data) // 2] ^= 1  # a bit of a value: it can still be read
    rotten.write_bytes(data)
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
    assert "train 1 of stream 'sensors' cannot be read: its checksum is" in message
    assert str(rotten) in message


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
    for damage, finding in (
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
        assert finding in message
        assert "Fix: restore" in message
    file.write_bytes(whole)
    again = gate_over(spark, tmp_path, {"hot": ("H", HOT)})
    again.start()
    again.stop()
    same(again, tmp_path / "source", hot=HOT)


def files_of(state: Path) -> set[str]:
    """Return the files that a refused start must not touch."""
    files = {str(path.relative_to(state)) for path in state.rglob("*") if path.is_file()}
    return {file for file in files if not file.startswith(("journal.", "lock"))}


def test_a_journal_that_is_missing_or_was_set_back_is_refused_and_nothing_is_deleted(
    spark: SparkSession, tmp_path: Path
) -> None:
    state, source = tmp_path / "state", tmp_path / "source"
    journal = state / "journal.db"
    (tmp_path / "old").mkdir()
    (tmp_path / "old/000000000000-000000000000.parquet").touch()

    def run(offered: int) -> Headgate:
        gate = gate_over(spark, tmp_path, {"all": ("H", ALL)})
        gate.start()
        consume(gate, offered)
        gate.stop()
        return gate

    def refused(message: str, **options: Any) -> None:
        before = files_of(state)
        gate = gate_over(spark, tmp_path, {"all": ("H", ALL)}, **options)
        sink = Sink(path=str(tmp_path / "old"))
        gate.add_query(Query(name="new", sql=HOT, query_class="H", sink=sink))
        with pytest.raises(RecoveryRefused, match=message):
            gate.start()
        assert files_of(state) == before

    run(write_readings(source, files=1, rows=50))
    leftover = state / "log/sensors/000000000001.parquet"
    leftover.touch()  # of a crash: the next start removes it, unless it is refused
    refused("query 'new': expected an empty results folder")
    refused("query 'new': expected an empty results folder", fresh=True)
    before = files_of(state)

    def give_up(done: int, total: int) -> None:
        raise KeyboardInterrupt

    gate = gate_over(spark, tmp_path, {"all": ("H", ALL)}, rehearsal_s=0.01)
    with pytest.raises(KeyboardInterrupt):
        gate.start(progress=give_up)  # in the rehearsal
    assert before <= files_of(state)
    journal.rename(tmp_path / "journal.db")
    refused(r"expected a journal\.db, which belongs to journal\.generation, found none")
    older = (tmp_path / "journal.db").read_bytes()
    journal.write_bytes(older)
    run(write_readings(source, files=1, rows=50, first_file=1) * 2)
    journal.write_bytes(older)
    for _ in range(2):  # a supervisor starts it again and again
        refused(r"expected a journal\.db with \d+ transactions, as journal\.generation says, found")
    (state / "journal.generation").unlink()
    refused("query 'all': expected no results in .* of train 1 or later, which it has not read")
    newer = state / "results/all/000000000001-000000000001.parquet"
    newer.rename(tmp_path / "consumed")
    same(run(100), source, all=ALL)


@pytest.mark.parametrize("damage", [b"no database", b"SQLite format 3\0" + bytes(4080)])
def test_a_journal_that_is_damaged_is_refused_with_what_to_do(
    spark: SparkSession, tmp_path: Path, damage: bytes
) -> None:
    write_readings(tmp_path / "source", files=1, rows=20)
    (tmp_path / "state").mkdir()
    (tmp_path / "state/journal.db").write_bytes(damage)
    for _ in range(2):  # the first Headgate has released the directory
        gate = gate_over(spark, tmp_path, {"all": ("H", ALL)})
        with pytest.raises(RecoveryRefused, match=r"expected a journal\.db that SQLite can read"):
            gate.start()


@pytest.mark.parametrize("jump_s", [-7200.0, 7200.0])
def test_a_clock_that_is_set_delays_nothing(
    spark: SparkSession, tmp_path: Path, jump_s: float
) -> None:
    jumped = threading.Event()
    tried: list[str] = []

    def reached(point: str) -> None:
        # The clock is set during the first call, which then fails and is retried.
        if point == "results written" and not tried:
            tried.append(point)
            jumped.set()
            raise OSError("not yet")

    offered = write_readings(tmp_path / "source", files=2, rows=50)
    gate = gate_over(spark, tmp_path, {"hot": ("H", HOT), "all": ("N", ALL)}, reached=reached)
    clock = Clock(lambda: time.time() + (jump_s if jumped.is_set() else 0.0))
    began_s = time.monotonic()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(parts_module, "Clock", lambda: clock)
        gate.start()
    consume(gate, offered)
    report = gate.stop()
    assert tried
    assert report is not None
    most_s = [line.response_s.maximum for line in report.classes if line.response_s.count]
    assert len(most_s) == 2
    assert all(0 <= maximum_s < time.monotonic() - began_s for maximum_s in most_s)
    same(gate, tmp_path / "source", hot=HOT, all=ALL)
