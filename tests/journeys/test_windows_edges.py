"""Edge cases of windows: clashing names, times without a zone, text sinks, dropped queries."""

import gc
import json
from collections import Counter
from datetime import timedelta
from pathlib import Path
from shutil import rmtree
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from independent import committed_rows
from kit.engines import engine_of
from kit.streams import file_stream
from pyspark.sql import SparkSession
from sources import balanced, consume, until
from two_streams import BASE

from headgate import Headgate, Query, Sink, Stream, replay
from headgate.errors import ConfigRefused, QueryRefused, RecoveryRefused

pytestmark = pytest.mark.spark

NAMES = ("window", "end", "a.b", "c d", "e`f", "ts")
SCHEMA = "window INT, `end` INT, `a.b` STRING, `c d` INT, `e``f` INT, ts TIMESTAMP_NTZ"


def write(folder: Path, number: int, count: int = 10) -> None:
    """Write a file of readings, one per second, in columns whose names SQL has to quote."""
    folder.mkdir(exist_ok=True)
    rows = range(number * count, (number + 1) * count)
    columns = [
        pa.array([row % 7 for row in rows], pa.int32()),
        pa.array([row % 3 for row in rows], pa.int32()),
        pa.array(["xy"[row % 2] for row in rows], pa.string()),
        pa.array([row for row in rows], pa.int32()),
        pa.array([1 for _ in rows], pa.int32()),
        pa.array([(BASE + timedelta(seconds=row)).replace(tzinfo=None) for row in rows],
                 pa.timestamp("us")),
    ]  # fmt: skip
    pq.write_table(pa.table(columns, names=list(NAMES)), folder / f"{number:04d}.parquet")


def stream(folder: Path, name: str = "s", **more: Any) -> Stream:
    return file_stream(name, folder, SCHEMA, **more)


def query(name: str, sql: str, **more: Any) -> Query:
    return Query(name=name, sql=sql, query_class="default", **more)


def lines(folder: Path) -> list[dict[str, Any]]:
    files = sorted(folder.glob("*.json"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


QUOTED = {
    "star": "SELECT * FROM s [RANGE 10 SECONDS] WHERE `c d` > 3",
    "count": "SELECT `a.b`, count(*) AS `n.m` FROM s [RANGE 10 SECONDS] GROUP BY `a.b`",
    "own": "SELECT `end`, `e``f` FROM s [ROWS 10] WHERE `end` = 1",
    "pairs": "SELECT a.`c d` AS `x``y`, b.`a.b`, a.ts FROM s [RANGE 1 SECOND] a"
    " JOIN s [RANGE 1 SECOND] b ON a.`c d` = b.`c d`",
    "union": "(SELECT * FROM s) UNION ALL (SELECT * FROM s)",
    "window": "SELECT window, ts FROM s [ROWS 3]",
}
TUPLES = "FROM s [RANGE 5 SECONDS] WHERE `c d` BETWEEN 7 AND 16"
WITHOUT_ROWS = {
    "at_once": f"SELECT count(*) AS n, max(`c d`) AS top {TUPLES}",
    "each": f"SELECT count(*) AS n, max(`c d`) AS top {TUPLES} LIMIT 1",
    "having": f"SELECT count(*) AS n, max(`c d`) AS top {TUPLES} HAVING count(*) < 9",
}


@pytest.fixture(scope="module")
def stopped(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Headgate:
    """Return a gate that has run all texts over three files, and was recorded."""
    folder = tmp_path_factory.mktemp("edges")
    for number in range(3):
        write(folder / "s", number)
    gate = Headgate(spark, state=folder / "state", rehearsal_s=0, record=True)
    gate.add_stream(stream(folder / "s"))
    for name, sql in QUOTED.items():
        gate.add_query(query(name, sql))
        gate.add_query(query(f"{name}_text", sql, sink=Sink(format="json")))
    for name, sql in WITHOUT_ROWS.items():
        gate.add_query(query(name, sql))
    gate.start()
    consume(gate, 30)
    report = gate.stop()
    assert report is not None
    assert not report.errors
    return gate


def test_names_that_sql_has_to_quote(stopped: Headgate) -> None:
    results = stopped.state / "results"
    counts = {name: committed_rows(results / name).total() for name in QUOTED}
    assert counts == {"star": 16, "count": 4, "own": 10, "pairs": 30, "union": 58, "window": 30}
    for name in QUOTED:
        assert len(lines(results / f"{name}_text")) == counts[name], name
    kind = pq.read_schema(next((results / "star").glob("*.parquet"))).field("ts").type
    assert kind == pa.timestamp("us"), "a time without a zone stays one"
    assert list(lines(results / "pairs_text")[0]) == ["x`y", "a.b", "ts"]
    balanced(stopped)
    replayed = replay(stopped.state, ["rr"])
    assert replayed.same_decisions
    assert {outcome.policy for outcome in replayed.reports} == {"cqc", "rr"}


def test_what_has_a_result_without_rows(stopped: Headgate) -> None:
    for name in WITHOUT_ROWS:
        rows = committed_rows(stopped.state / "results" / name)
        assert rows == {(0, None): 2, (3, 9): 1, (5, 14): 1, (2, 16): 1}, name


def test_queries_come_and_go_while_others_run(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "s", 0)
    write(tmp_path / "other", 0)
    gate = Headgate(spark, state=tmp_path / "state", rehearsal_s=0, retention_s=0)
    gate.add_stream(stream(tmp_path / "other", "other"))
    gate.add_query(query("other", "SELECT ts FROM other"))
    gate.start()
    sql = "SELECT count(*) AS n, max(`c d`) AS top FROM s [RANGE 8 SECONDS SLIDE 4 SECONDS]"
    options = {"path": str(tmp_path / "s"), "maxFilesPerTrigger": "1"}
    gate.add(
        {
            "streams": {"s": {"format": "parquet", "schema": SCHEMA, "options": options,
                              "event_time": "ts", "quiet_s": None, "trigger_s": 0.01}},
            "queries": {"one": {"sql": sql, "class": "default"},
                        "two": {"sql": sql.replace("8", "4"), "class": "default"}},
        }
    )  # fmt: skip
    consume(gate, 10, but=("other",))
    with pytest.raises(ConfigRefused, match="dropped before the stream"):
        gate.drop_stream("s")
    gate.drop_query("two")
    write(tmp_path / "s", 1)
    consume(gate, 20, but=("other",))
    gate.add_query(query("three", "SELECT `c d` FROM s [ROWS 5 SLIDE 5]"))
    results = tmp_path / "state" / "results"
    assert committed_rows(results / "two") == {(4, 3): 1, (4, 7): 1}
    with pytest.raises(RecoveryRefused, match="'two': expected an empty results folder"):
        gate.add_query(query("two", sql))
    rmtree(results / "two")
    gate.add_query(query("two", sql.replace("8", "2").replace("SLIDE 4", "SLIDE 2")))
    write(tmp_path / "s", 2)
    consume(gate, 30, but=("other", "two", "three"))
    # Where a query begins depends on what retention has left; where it ends does not.
    until(lambda: (2, 27) in committed_rows(results / "two"), gate)
    until(lambda: gate.totals()["three"][1] >= 4, gate)
    for name in ("one", "two", "three"):
        gate.drop_query(name)
    gate.drop_stream("s")
    gc.collect()
    engine = engine_of(gate)
    assert not engine.parts.executor.windowed.plans  # prepared plans, and their objects in the JVM
    assert not any(timeline.readers for timeline in engine.parts.store.timelines.values())
    report = gate.stop()
    assert report is not None
    assert not report.errors
    rows = committed_rows(results / "one")
    assert rows == {(4, 3): 1, **{(8, top): 1 for top in (7, 11, 15, 19, 23, 27)}}
    assert committed_rows(results / "two") >= Counter({(2, top): 1 for top in (21, 23, 25, 27)})


def test_names_of_timelines_are_taken(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "s", 0)
    gate = Headgate(spark, state=tmp_path / "state", rehearsal_s=0)
    for name in ("a", "b", "a__b", "c", "c__time"):
        gate.add_stream(stream(tmp_path / "s", name))
    gate.add_query(query("q", "SELECT count(*) AS n FROM a__b [ROWS 3]"))
    gate.add_query(query("ba", "SELECT b.ts FROM b [RANGE 3 SECONDS], c [RANGE 3 SECONDS]"))
    gate.add_query(query("ab", "SELECT b.ts FROM c [RANGE 3 SECONDS], b [RANGE 3 SECONDS]"))
    with pytest.raises(ConfigRefused, match="for the time of a and b"):
        gate.add_query(query("r", "SELECT a.ts FROM a [RANGE 3 SECONDS], b [RANGE 3 SECONDS]"))
    with pytest.raises(ConfigRefused, match="for the time of c"):
        gate.add_query(query("r", "SELECT count(*) AS n FROM c [ROWS 3]"))
    with pytest.raises(ConfigRefused, match="dropped before"):
        gate.drop_stream("c")
    for name in ("q", "ab", "ba"):
        gate.drop_query(name)
    gate.drop_stream("c")
    gate.drop_stream("a__b")
    assert gate.drop_stream("a") is None


REFUSED = {
    "SELECT count(*) AS n FROM s [RANGE 1 SECOND] a, s [RANGE 1 SECOND] b": "GROUP BY or an aggr",
    "SELECT a.ts FROM s [RANGE 1 SECOND] a, s [RANGE 1 SECOND] b ORDER BY 1": "ORDER BY",
    "SELECT DISTINCT a.ts FROM s [RANGE 1 SECOND] a, s [RANGE 1 SECOND] b": "DISTINCT",
    "SELECT a.ts FROM s [RANGE 1 SECOND] a, s [RANGE 1 SECOND] b LIMIT 3": "LIMIT",
    "SELECT ts FROM s [RANGE 1 SECOND] a WHERE EXISTS"
    " (SELECT 1 FROM s [RANGE 1 SECOND] b WHERE a.`c d` = b.`c d`)": "same SLIDE",
    "SELECT ts FROM s [RANGE 1 SECOND] UNION ALL SELECT ts FROM s [RANGE 1 SECOND]": "UNION",
    "SELECT ts FROM s [RANGE 5 SECONDS] TABLESAMPLE (50 PERCENT)": "TABLESAMPLE",
    "SELECT ts, current_timestamp() AS n FROM s [RANGE 5 SECONDS]": "CurrentTimestamp",
    "SELECT ts, rand() AS n FROM s [RANGE 5 SECONDS]": "Rand",
    "SELECT a.ts FROM s [RANGE 5 SECONDS] a JOIN s b ON a.ts = b.ts": "FROM s has no window",
    "SELECT nobody FROM s [RANGE 5 SECONDS]": "column `nobody` does not exist",
    "SELECT ts FROM s UNION SELECT ts FROM s": "DISTINCT",
    "SELECT ts, ts FROM s [ROWS 5]": "comes out twice",
    "SELECT count(*) AS n FROM (SELECT ts FROM s LIMIT 3)"
    " GROUP BY window(ts, '5 seconds')": "window() groups something other than the single tuples",
}


def test_refusals_name_what_the_user_wrote(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "s", 0)
    gate = Headgate(spark, state=tmp_path / "state", rehearsal_s=0)
    gate.add_stream(stream(tmp_path / "s"))
    messages = {}
    for sql in REFUSED:
        with pytest.raises(QueryRefused) as refused:
            gate.add_query(query("q", sql))
        messages[sql] = str(refused.value)
    wrong = {
        sql: text for sql, text in messages.items() if REFUSED[sql] not in text or "__hg" in text
    }
    assert not wrong
    with pytest.raises(QueryRefused, match="cut is for queries without windows"):
        gate.add_query(query("q", "SELECT ts FROM s [ROWS 3]", cut=True))
    with pytest.raises(QueryRefused, match="cannot be read"):
        gate.add({"queries": {"q": {"sql": "SELECT ts FROM s [ROWS 0]", "class": "default"}}})


def test_a_window_that_the_clock_has_closed_stays_closed(
    spark: SparkSession, tmp_path: Path
) -> None:
    def started() -> Headgate:
        gate = Headgate(spark, state=tmp_path / "state", rehearsal_s=1)
        gate.add_stream(stream(tmp_path / "s", quiet_s=0.1))
        gate.add_query(query("q", "SELECT min(`c d`) AS low FROM s [RANGE 2 SECONDS]"))
        gate.add_query(query("u", "SELECT `c d`, ts FROM s UNION ALL SELECT `c d`, ts FROM s"))
        gate.start()
        return gate

    results = tmp_path / "state" / "results"
    write(tmp_path / "s", 0, 2)
    first = started()
    until(lambda: [first.totals()[name][1] for name in "qu"] == [1, 4], first)
    first.stop()
    again = started()
    write(tmp_path / "s", 1, 2)  # these tuples may be late or not, but no result comes twice
    write(tmp_path / "s", 2000, 2)
    until(lambda: again.totals()["q"][0] == 6, again)
    until(lambda: again.totals()["q"][1] >= 2, again)
    report = again.stop()
    assert report is not None
    assert not report.errors
    rows = committed_rows(results / "q")
    assert rows[0,] == 1
    assert set(rows.values()) == {1}
    assert set(committed_rows(results / "u").values()) == {2}
    balanced(again)
