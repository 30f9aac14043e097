"""Queries are paused, restarted and altered while others run, and every version is right."""

import threading
from collections import Counter
from pathlib import Path

import pytest
from faults import ALL, DRY, HOT, same
from independent import committed_rows, expected_rows
from kit.engines import run_of
from kit.gates import stop_without_errors
from pyspark.sql import SparkSession
from pyspark.sql.types import IntegerType
from sources import balanced, consume, gate_over, until, write_readings

from headgate import Headgate, Query, Sink, results
from headgate.errors import QueryRefused, RecoveryRefused, RequestRefused, UnknownName

pytestmark = [pytest.mark.spark, pytest.mark.slow]

COUNTS = "SELECT count(*) AS n FROM sensors [RANGE 2 SECONDS SLIDE 1 SECOND]"
TOPS = "SELECT max(temperature) AS t FROM sensors [RANGE 3 SECONDS SLIDE 1 SECOND]"


def windows(size_s: int, value: str, since_s: int, before_s: int) -> str:
    """Return the batch text of windows that slide by a second, by the second in which they end."""
    return (
        f"SELECT {value} FROM sensors, generate_series({since_s}, {before_s}) AS ends(e)"
        f" WHERE epoch(ts) >= e - {size_s} AND epoch(ts) < e GROUP BY e"
    )


def test_a_query_that_failed_is_restarted_and_a_paused_one_is_resumed(
    spark: SparkSession, tmp_path: Path
) -> None:
    broken = tmp_path / "broken"
    broken.touch()

    def measured(value: int) -> int:
        if broken.exists():
            raise ValueError("the table of corrections is away")
        return value

    spark.udf.register("measured", measured, IntegerType())
    corrected = "SELECT measured(temperature) AS t FROM sensors"
    queries = {"hot": ("H", HOT), "corrected": ("C", corrected), "dry": ("N", DRY)}
    offered = write_readings(tmp_path / "source", files=1, rows=50)
    gate = gate_over(spark, tmp_path, {**queries, "counts": ("C", COUNTS)})
    gate.start()
    corrections, dry = gate.query("corrected"), gate.query("dry")
    until(lambda: corrections.state == "FAILED", gate)
    consume(gate, offered, but=("corrected",))
    with pytest.raises(RequestRefused, match="query 'corrected' has failed"):
        gate.pause_query("corrected")
    with pytest.raises(RequestRefused, match="query 'dry' is WAITING, not PAUSED"):
        gate.resume_query("dry")
    with pytest.raises(UnknownName, match="there is no query 'drj'"):
        gate.restart_query("drj")
    for name in ("dry", "counts"):
        gate.pause_query(name)
    run_id = dry.runId
    offered += write_readings(tmp_path / "source", files=2, rows=50, first_file=1)
    consume(gate, offered, but=("corrected", "dry", "counts"))
    assert (dry.state, dry.isActive, dry.runId) == ("PAUSED", False, run_id)
    assert gate.totals()["dry"][0] == 50
    broken.unlink()
    gate.restart_query("corrected")
    gate.resume_query("dry")
    gate.resume_query("counts")
    gate.restart_query("hot")  # one that runs
    assert dry.runId != run_id
    consume(gate, offered)
    assert corrections.exception() is None
    assert gate.health()["healthy"]
    gate.stop()
    balanced(gate)
    same(gate, tmp_path / "source", hot=HOT, dry=DRY)
    same(gate, tmp_path / "source", corrected="SELECT temperature FROM sensors")
    counts = committed_rows(tmp_path / "state/results/counts")
    assert counts == expected_rows(windows(2, "count(*)", 1, 2), tmp_path / "source")


def test_a_paused_query_stays_paused_in_the_next_run_and_then_goes_on(
    spark: SparkSession, tmp_path: Path
) -> None:
    offered = write_readings(tmp_path / "source", files=1, rows=50)
    gate = gate_over(spark, tmp_path, {"hot": ("H", HOT), "dry": ("N", DRY)})
    gate.start()
    consume(gate, offered)
    gate.pause_query("dry")
    assert gate.alter_query("dry", sql=ALL) == 2
    assert gate.query("dry").state == "PAUSED"
    gate.set_query("dry", commit_every_s=0.1)
    assert gate.query("dry").state == "PAUSED"
    gate.stop()
    offered += write_readings(tmp_path / "source", files=1, rows=50, first_file=1)
    gate = gate_over(spark, tmp_path, {"hot": ("H", HOT), "dry": ("N", ALL)})
    gate.start()
    assert gate.query("dry").state == "PAUSED"
    consume(gate, offered, but=("dry",))
    gate.resume_query("dry")
    consume(gate, offered)
    gate.stop()
    same(gate, tmp_path / "source", hot=HOT)
    first = expected_rows(f"{DRY} AND ts < to_timestamp(1)", tmp_path / "source")
    assert committed_rows(tmp_path / "state/results/dry") == first
    second = expected_rows(f"{ALL} WHERE ts >= to_timestamp(1)", tmp_path / "source")
    assert committed_rows(tmp_path / "state/results/dry.v2") == second


def test_the_rhythm_of_a_sink_changes_while_queries_run(
    spark: SparkSession, tmp_path: Path
) -> None:
    source, folder = tmp_path / "source", tmp_path / "state/results/hot"
    offered = write_readings(source, files=1, rows=50)
    gate = gate_over(spark, tmp_path, {"hot": ("H", HOT), "dry": ("N", DRY)})
    gate.start()
    consume(gate, offered)
    assert gate.set_query("hot", commit_every_s=3600.0).sink.commit_every_s == 3600.0
    first = [*folder.glob("*.parquet")]
    offered += write_readings(source, files=2, rows=50, first_file=1)
    consume(gate, offered)
    assert [*folder.glob("*.parquet")] == first
    assert [*folder.glob("_collected/*")]
    with pytest.raises(QueryRefused, match="query 'hot': sink target_file_mb"):
        gate.set_query("hot", commit_every_s=None, target_file_mb=1)
    gate.set_query("hot", commit_every_s=None, compact=True)
    assert not [*folder.glob("_collected/*")]
    rows = committed_rows(folder)
    assert rows == expected_rows(HOT, source)
    offered += write_readings(source, files=2, rows=50, first_file=3)
    consume(gate, offered)
    stop_without_errors(gate)
    assert results(folder).count_rows() == sum(expected_rows(HOT, source).values())
    assert (folder / "_manifest").exists()
    same(gate, source, dry=DRY)


def test_a_query_that_is_paused_or_has_failed_holds_no_trains_beyond_retention(
    spark: SparkSession, tmp_path: Path
) -> None:
    offered = write_readings(tmp_path / "source", files=1, rows=50)
    bad = "SELECT CAST(location AS INT) AS n FROM sensors"
    queries = {"hot": ("H", HOT), "dry": ("N", DRY), "bad": ("N", bad)}
    gate = gate_over(spark, tmp_path, queries, retention_s=0)
    gate.start()
    consume(gate, offered, but=("bad",))
    until(lambda: gate.query("bad").exception() is not None, gate)
    gate.pause_query("dry")
    offered += write_readings(tmp_path / "source", files=1, rows=50, first_file=1)
    consume(gate, offered, but=("bad", "dry"))
    until(lambda: not list((tmp_path / "state/log/sensors").glob("*.parquet")), gate)
    gate.resume_query("dry")
    gate.restart_query("bad")
    accounts = gate.accounts()
    assert (accounts["dry"].missed, accounts["bad"].missed) == (50, 100)
    offered += write_readings(tmp_path / "source", files=1, rows=50, first_file=2)
    until(lambda: gate.totals()["dry"][0] == 100, gate)
    gate.stop()
    balanced(gate)


def test_every_version_of_a_query_is_the_answer_over_its_own_part_of_the_log(
    spark: SparkSession, tmp_path: Path
) -> None:
    source, folder = tmp_path / "source", tmp_path / "state/results"
    offered = write_readings(source, files=2, rows=50)
    gate = gate_over(
        spark, tmp_path, {"a": ("H", HOT), "b": ("C", HOT), "w": ("C", COUNTS), "x": ("N", COUNTS)}
    )
    gate.start()
    consume(gate, offered)
    with pytest.raises(QueryRefused, match="query 'a', line 1: column `heat` does not"):
        gate.alter_query("a", sql="SELECT heat FROM sensors")
    with pytest.raises(QueryRefused, match="query 'a': FROM needs other streams than before"):
        gate.alter_query("a", sql=COUNTS)
    with pytest.raises(QueryRefused, match="query 'a': from is 'noon'"):
        gate.alter_query("a", sql=DRY, start_from="noon")
    query_id = gate.query("a").id
    assert gate.alter_query("a", sql=DRY) == 2
    assert gate.alter_query("b", sql=DRY, start_from="oldest") == 2
    assert gate.alter_query("w", sql=TOPS) == 2
    assert gate.alter_query("x", sql=HOT, start_from="now") == 2
    assert gate.query("a").id != query_id
    offered += write_readings(source, files=2, rows=50, first_file=2)
    consume(gate, offered - 100, but=("b",))
    consume(gate, offered, but=("a", "w", "x"))
    assert gate.alter_query("a", sql=ALL) == 3
    gate.add_query(Query(name="late", sql=HOT, query_class="N", start_from="now"))
    offered += write_readings(source, files=1, rows=50, first_file=4)
    until(lambda: gate.totals()["a"][0] == 250 or gate.query("a").exception(), gate)
    until(lambda: gate.totals()["late"][0] == 50, gate)
    until(lambda: gate.totals()["x"][0] == 150, gate)
    consume(gate, offered, but=("a", "x", "late"))
    assert {row["query"]: row["version"] for row in gate.status()["queries"]}["a"] == 3
    run = run_of(gate)
    units = {unit for record in run.call_log.calls() for unit in record.call.units}
    assert {run.names[unit] for unit in units} == {"a", "b", "w", "x", "late"}  # of all versions
    stop_without_errors(gate)

    def part(sql: str, first: int, before: int) -> Counter[tuple[object, ...]]:
        tail = f"ts >= to_timestamp({first}) AND ts < to_timestamp({before})"
        return expected_rows(f"{sql} {'AND' if 'WHERE' in sql else 'WHERE'} {tail}", source)

    assert committed_rows(folder / "a") == part(HOT, 0, 2)
    assert committed_rows(folder / "a.v2") == part(DRY, 2, 4)
    assert committed_rows(folder / "a.v3") == part(ALL, 4, 5)
    assert committed_rows(folder / "b") == part(HOT, 0, 2)
    assert committed_rows(folder / "b.v2") == part(DRY, 0, 5)
    assert committed_rows(folder / "w") == expected_rows(windows(2, "count(*)", 1, 1), source)
    tops = expected_rows(windows(3, "max(temperature)", 2, 4), source)
    assert committed_rows(folder / "w.v2") == tops
    assert committed_rows(folder / "x.v2") == part(HOT, 2, 5)
    assert committed_rows(folder / "late") == part(HOT, 4, 5)


def test_a_version_goes_on_in_the_next_run_if_that_has_its_text(
    spark: SparkSession, tmp_path: Path
) -> None:
    source, keys = tmp_path / "source", list[str]()

    def gate_of(sql: str) -> Headgate:
        gate = gate_over(spark, tmp_path, {"a": ("H", sql)})
        sink = Sink(format="callback")
        gate.add_query(
            Query(name="called", sql=sql, query_class="H", sink=sink),
            deliver=lambda table, key: keys.append(key),
        )
        return gate

    offered = write_readings(source, files=1, rows=50)
    gate = gate_of(HOT)
    gate.start()
    consume(gate, offered)
    for name in ("a", "called"):
        gate.alter_query(name, sql=ALL)
    offered += write_readings(source, files=1, rows=50, first_file=1)
    consume(gate, offered)
    gate.stop()
    with pytest.raises(RecoveryRefused, match="query 'a': expected the text of the last run") as e:
        gate_of(HOT).start()
    assert str(e.value).endswith("mix with the old ones. The same holds for 'called'")
    gate = gate_of(ALL)
    gate.start()
    offered += write_readings(source, files=1, rows=50, first_file=2)
    consume(gate, offered)
    gate.stop()
    balanced(gate)
    later = expected_rows(f"{ALL} WHERE ts >= to_timestamp(1)", source)
    assert committed_rows(tmp_path / "state/results/a.v2") == later
    assert keys == ["called/0-0", "called.v2/1-1", "called.v2/2-2"]


def test_a_query_that_has_failed_stays_one_when_its_next_version_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    offered = write_readings(tmp_path / "source", files=1, rows=50)
    bad = "SELECT CAST(location AS INT) AS n FROM sensors"
    gate = gate_over(spark, tmp_path, {"hot": ("H", HOT), "bad": ("N", bad)})
    gate.start()
    until(lambda: gate.query("bad").exception() is not None, gate)
    folder = tmp_path / "state/results/bad.v2"
    folder.write_text("in the way")
    with pytest.raises(QueryRefused, match="cannot be written"):
        gate.alter_query("bad", sql=ALL)
    folder.unlink()
    assert gate.query("bad").state == "FAILED"
    assert gate.alter_query("bad", sql=ALL) == 2
    consume(gate, offered)
    gate.stop()
    balanced(gate)
    same(gate, tmp_path / "source", {"bad": folder}, hot=HOT, bad=ALL)


def test_a_query_is_not_altered_while_its_collected_results_cannot_become_visible(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / "state/results/hot"
    offered = write_readings(tmp_path / "source", files=1, rows=50)
    gate = gate_over(spark, tmp_path, {"dry": ("N", DRY)})
    gate.add_query(Query(name="hot", sql=HOT, query_class="H", sink=Sink(commit_every_s=3600.0)))
    gate.start()
    consume(gate, offered)
    (folder / "_unfinished").rename(tmp_path / "aside")
    (folder / "_unfinished").touch()  # not even root can write there
    with pytest.raises(QueryRefused):
        gate.alter_query("hot", sql=ALL)
    (folder / "_unfinished").unlink()
    (tmp_path / "aside").rename(folder / "_unfinished")
    gate.restart_query("hot")
    assert gate.alter_query("hot", sql=ALL) == 2
    gate.stop()
    same(gate, tmp_path / "source", dry=DRY, hot=HOT)


def test_a_query_is_not_restarted_beside_a_folder_that_is_away_with_its_results(
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
    with pytest.raises(QueryRefused, match="is away, with results that are committed"):
        gate.restart_query("all")
    assert gate.query("all").state == "FAILED"
    with pytest.raises(QueryRefused, match="has not taken all results yet"):
        gate.alter_query("all", sql=DRY)
    assert not folder.exists()
    aside.rename(folder)
    until(lambda: committed_rows(folder).total() == offered, gate)
    gate.restart_query("all")
    offered += write_readings(tmp_path / "source", files=1, rows=50, first_file=2)
    consume(gate, offered)
    gate.stop()
    balanced(gate)
    same(gate, tmp_path / "source", hot=HOT, all=ALL)
