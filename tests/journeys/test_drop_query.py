"""Dropped queries: their results stay, and new queries may take their names, but not their ids."""

import shutil
import threading
from pathlib import Path

import pytest
from faults import ALL, DRY, HOT, same
from independent import committed_rows
from kit.engines import engine_of
from pyspark.sql import SparkSession
from sources import consume, gate_over, until, write_readings

from headgate import Query
from headgate.errors import RecoveryRefused, UnknownName
from headgate.runtime.recording.recordings import read_recording
from headgate.runtime.recording.statistics_file import recorded_statistics
from headgate.runtime.what_if.replay import replay

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_a_dropped_query_runs_no_more_and_its_name_is_free(
    spark: SparkSession, tmp_path: Path
) -> None:
    offered = write_readings(tmp_path / "source", files=2, rows=50)
    gate = gate_over(spark, tmp_path, {"hot": ("H", HOT), "dry": ("N", DRY)})
    gate.start()
    consume(gate, offered)
    first = gate.query("dry")
    gate.drop_query("dry")
    before = committed_rows(tmp_path / "state/results/dry")
    offered += write_readings(tmp_path / "source", files=1, rows=50, first_file=2)
    consume(gate, offered)
    assert committed_rows(tmp_path / "state/results/dry") == before
    with pytest.raises(UnknownName, match="there is no query 'dry'"):
        gate.query("dry")
    results = tmp_path / "state/results/dry"
    again = Query(name="dry", sql=ALL, query_class="C")
    with pytest.raises(RecoveryRefused, match=f"query 'dry': expected an empty .* {results} "):
        gate.add_query(again)
    with pytest.raises(RecoveryRefused, match="Fix: move or remove the folder, or give the query"):
        gate.add({"queries": {name: {"class": "C", "sql": ALL} for name in ("new", "dry")}})
    assert [query.name for query in gate.queries] == ["hot"]
    results.rename(tmp_path / "old")
    second = gate.add_query(again)
    first.stop()  # must stop no query: the new one has another id
    consume(gate, offered)
    assert first.id != second.id == gate.query("dry").id
    gate.stop()
    assert gate.accounts()["dry"].delivered == offered
    same(gate, tmp_path / "source", hot=HOT)
    same(gate, tmp_path / "source", dry=ALL)


def test_queries_that_come_and_go_leave_results_and_their_part_in_the_class(
    spark: SparkSession, tmp_path: Path
) -> None:
    offered = write_readings(tmp_path / "source", files=2, rows=50)
    gate = gate_over(spark, tmp_path, {"hot": ("H", HOT), "dry": ("N", DRY)})
    gate.start()
    consume(gate, offered)
    shutil.copytree(tmp_path / "source", tmp_path / "before")
    text = DRY.replace("20", "{}")
    dropped, ids = gate.query("dry"), set[int]()
    for number in range(5):
        gate.drop_query("dry" if number == 0 else f"q{number - 1}")
        gate.add_query(Query(name=f"q{number}", sql=text.format(number), query_class="C"))
        consume(gate, offered)
        assert [line.name for line in gate.report().queries] == ["hot", f"q{number}"]
        assert len(engine_of(gate).members.paths) == 2
        ids |= {query["id"] for query in gate.status()["queries"]}
    assert len(ids) == 6
    dropped.stop()
    offered += write_readings(tmp_path / "source", files=1, rows=50, first_file=2)
    consume(gate, offered)
    assert not dropped.isActive
    gate.add_query(Query(name="whole", sql=ALL, query_class="N"))
    consume(gate, offered)
    report = gate.stop()
    assert report is not None
    assert [line.name for line in report.queries] == ["hot", "q4", "whole"]
    assert [line.tuples_in for line in report.queries] == [150, 150, 150]
    assert [line.tuples_in for line in report.classes] == [150, 100 * 4 + 150, 100 + 150]
    assert recorded_statistics(gate.state).keys() == {"hot", "q4", "whole"}
    same(gate, tmp_path / "source", hot=HOT)
    same(gate, tmp_path / "source", whole=ALL)
    for number in range(4):
        same(gate, tmp_path / "before", **{f"q{number}": text.format(number)})
    same(gate, tmp_path / "source", q4=text.format(4))


def test_others_come_while_a_query_that_leaves_waits_for_its_last_call(
    spark: SparkSession, tmp_path: Path
) -> None:
    blocked, goes_on = threading.Event(), threading.Event()

    def reached(point: str) -> None:
        if point == "results written" and not blocked.is_set():
            blocked.set()
            goes_on.wait(60)

    offered = write_readings(tmp_path / "source", files=1, rows=50)
    gate = gate_over(spark, tmp_path, {"hot": ("H", HOT)}, reached=reached)
    gate.start()
    assert blocked.wait(60)
    leaving = threading.Thread(target=gate.drop_query, args=("hot",))
    leaving.start()
    until(lambda: not gate.queries, gate)
    gate.add_query(Query(name="whole", sql=ALL, query_class="N"))
    assert [query["query"] for query in gate.status()["queries"]] == ["whole"]
    consume(gate, offered, but=("hot",))
    assert leaving.is_alive()
    with pytest.raises(UnknownName):
        gate.drop_query("hot")
    goes_on.set()
    leaving.join(60)
    assert not leaving.is_alive()
    gate.stop()
    same(gate, tmp_path / "source", whole=ALL)


def test_a_recording_knows_two_queries_of_one_name_by_their_ids(
    spark: SparkSession, tmp_path: Path
) -> None:
    offered = write_readings(tmp_path / "source", files=1, rows=50)
    gate = gate_over(spark, tmp_path, {"hot": ("H", HOT), "dry": ("N", DRY)}, record=True)
    gate.start()
    consume(gate, offered)
    gate.drop_query("dry")
    shutil.rmtree(tmp_path / "state/results/dry")
    gate.add_query(Query(name="dry", sql=ALL, query_class="N"))
    consume(gate, offered)
    gate.drop_query("hot")
    offered += write_readings(tmp_path / "source", files=1, rows=50, first_file=1)
    consume(gate, offered)
    gate.stop()
    same(gate, tmp_path / "source", dry=ALL)
    paths = read_recording(gate.state).paths
    assert [path.query.name for path in paths.values()] == ["hot", "dry", "dry"]
    again = replay(gate.state, ["fcfs"])
    assert again.same_decisions
    assert [line.tuples_in for line in again.measured.classes] == [50, 0, 150]
    assert [report.policy for report in again.reports][1:] == ["fcfs"]


def test_after_a_restart_a_dropped_query_does_not_write_into_its_old_results(
    spark: SparkSession, tmp_path: Path
) -> None:
    offered = write_readings(tmp_path / "source", files=2, rows=50)
    queries = {"hot": ("H", HOT), "dry": ("N", DRY)}
    first = gate_over(spark, tmp_path, queries)
    first.start()
    consume(first, offered)
    ids = {query.name: query.id for query in first.queries}
    first.drop_query("dry")
    first.stop()
    assert recorded_statistics(tmp_path / "state").keys() == {"hot"}
    results = tmp_path / "state/results/dry"
    before = committed_rows(results)
    with pytest.raises(RecoveryRefused, match="query 'dry': expected an empty results folder"):
        gate_over(spark, tmp_path, queries).start()
    assert committed_rows(results) == before
    shutil.rmtree(results)
    second = gate_over(spark, tmp_path, queries)
    second.start()
    offered += write_readings(tmp_path / "source", files=1, rows=50, first_file=2)
    consume(second, offered)
    assert second.query("hot").id == ids["hot"]
    assert second.query("dry").id not in ids.values()
    second.stop()
    same(second, tmp_path / "source", hot=HOT)
    same(second, tmp_path / "source", dry=DRY)
