"""Queries that are cut into two segments answer as if they were whole, even after a crash."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from crash import Crash, CrashAt
from independent import committed_rows, expected_rows
from pyspark.sql import SparkSession
from sources import balanced, consume, gate_over, until, write_readings

from headgate import Headgate, Query
from headgate.errors import QueryRefused
from headgate.model.query import QueryStatistics
from headgate.policies.registry import policies
from headgate.runtime.recording.statistics_file import record_statistics, recorded_statistics

pytestmark = pytest.mark.spark

CUT = {
    "hot": "SELECT upper(location) AS place, ts FROM sensors WHERE temperature > 30",
    "dry": "SELECT location, length(location) AS n, ts FROM sensors"
    " WHERE humidity < 30 AND length(location) > 3 AND temperature >= 2",
    "never": "SELECT upper(location) AS place FROM sensors WHERE temperature > 1000",
}
PLAIN = {
    "all": ("H", "SELECT * FROM sensors"),
    "cold": ("N", "SELECT ts FROM sensors WHERE temperature < 9"),
}


def _gate(spark: SparkSession, folder: Path, *, cut: bool = True, **options: object) -> Headgate:
    gate = gate_over(spark, folder, PLAIN, **options)
    for number, (name, sql) in enumerate(CUT.items()):
        gate.add_query(Query(name=name, sql=sql, query_class="HCN"[number], cut=cut))
    return gate


def _same(gate: Headgate, folder: Path) -> None:
    texts = {**CUT, **{name: sql for name, (_, sql) in PLAIN.items()}}
    for name, sql in texts.items():
        rows = committed_rows(folder / "state" / "results" / name)
        assert rows == expected_rows(sql, folder / "source"), name
    balanced(gate)


ON_SPARK = [name for name, entry in policies().items() if "spark" in entry.engines]
SOME = ("cqc", "mr", "mc")


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(SOME, id="some"),
        pytest.param([n for n in ON_SPARK if n not in SOME], id="others", marks=pytest.mark.long),
    ],
)
def test_the_answers_are_those_of_the_text(
    spark: SparkSession, tmp_path: Path, names: Sequence[str]
) -> None:
    """Let the policies take turns in one run."""
    offered = 0
    (tmp_path / "source").mkdir()
    gate = _gate(spark, tmp_path, policy=names[0], train_tuples=60)
    gate.start()
    for policy in names:
        gate.set_policy(policy)
        offered += write_readings(tmp_path / "source", 3, rows=50, first_file=offered // 50)
        consume(gate, offered)
    report = gate.stop()
    assert report is not None
    assert not report.errors
    _same(gate, tmp_path)
    assert gate.accounts()["never"].filtered == offered
    hot = next(line for line in report.queries if line.name == "hot")
    assert hot.response_s.count == sum(committed_rows(tmp_path / "state/results/hot").values())


def test_policies_of_segments_cut_queries_where_it_pays(
    spark: SparkSession, tmp_path: Path
) -> None:
    offered = write_readings(tmp_path / "source", files=2, rows=30)
    texts = {
        "hot": CUT["hot"],
        "dear": CUT["dry"],
        "whole": "SELECT location FROM sensors WHERE temperature > 3",
    }
    segment = QueryStatistics(cost_s=1e-7, selectivity=0.1, overhead_s=0.01)
    figures = {
        "hot__first": segment, "hot__rest": replace(segment, cost_s=1e-6),
        "dear__first": segment, "dear__rest": replace(segment, cost_s=1e-3),
    }  # fmt: skip
    (tmp_path / "state").mkdir()
    record_statistics(tmp_path / "state", figures)
    gate = gate_over(spark, tmp_path, {name: ("H", sql) for name, sql in texts.items()},
                     policy="chain")  # fmt: skip
    gate.add_query(Query(name="never", sql=CUT["never"], query_class="N", cut=False))
    gate.start()
    consume(gate, offered)
    cut = [name for name in (*texts, "never") if "queue " in gate.explanation(name).text()]
    gate.stop()
    assert cut == ["dear"]
    for name, sql in {**texts, "never": CUT["never"]}.items():
        rows = committed_rows(tmp_path / "state" / "results" / name)
        assert rows == expected_rows(sql, tmp_path / "source"), name
    statistics = recorded_statistics(tmp_path / "state")
    assert statistics["hot__rest"] == figures["hot__rest"]
    assert statistics["dear__rest"] != figures["dear__rest"]
    assert "hot" in statistics
    assert "dear" not in statistics


@pytest.mark.parametrize("times", [0, pytest.param(4, marks=pytest.mark.long)])
def test_crashes_anywhere_change_nothing_nor_does_a_cut_that_comes_or_goes(
    spark: SparkSession, tmp_path: Path, times: int
) -> None:
    offered = 0
    for point, cut in (
        ("results written", True),
        ("train journalled", True),
        ("result visible", False),
        ("step journalled", True),
    ):
        offered += write_readings(tmp_path / "source", 3 + times, rows=40, first_file=offered // 40)
        crash = CrashAt(point, times)
        gate = _gate(spark, tmp_path, cut=cut, workers=1, train_tuples=40, reached=crash)
        gate.start()
        until(crash.dead.is_set, gate)
        with suppress(Crash):  # the stop drops trains, too, and the crash raises at every point
            gate.stop()
    gate = _gate(spark, tmp_path, cut=False)
    gate.start()
    consume(gate, offered)
    gate.stop()
    _same(gate, tmp_path)


def test_they_come_and_go(spark: SparkSession, tmp_path: Path) -> None:
    offered = write_readings(tmp_path / "source", files=2, rows=30)
    gate = gate_over(spark, tmp_path, PLAIN)
    gate.start()
    consume(gate, offered)
    late = gate.add_query(Query(name="hot", sql=CUT["hot"], query_class="H", cut=True))
    offered += write_readings(tmp_path / "source", files=2, rows=30, first_file=2)
    consume(gate, offered)
    text = gate.explanation("hot").text()
    assert "queue       hot__rest" in text
    assert "select      temperature > 30" in text
    assert late.exception() is None
    assert "hot__rest" not in gate.status()["streams"]
    rows = committed_rows(tmp_path / "state/results/hot")
    assert rows == expected_rows(CUT["hot"], tmp_path / "source")
    late.stop()  # so that the loop hears twice that it stops
    gate.drop_query("hot")
    offered += write_readings(tmp_path / "source", files=1, rows=30, first_file=4)
    consume(gate, offered)
    gate.stop()
    assert committed_rows(tmp_path / "state/results/hot") == rows


def test_where_the_rest_fails_the_query_does_and_nobody_else(
    spark: SparkSession, tmp_path: Path
) -> None:
    offered = write_readings(tmp_path / "source", files=2, rows=30)
    gate = gate_over(spark, tmp_path, PLAIN)
    bad = "SELECT CAST(upper(location) AS INT) AS n FROM sensors WHERE temperature > 3"
    gate.add_query(Query(name="bad", sql=bad, query_class="H", cut=True))
    gate.start()
    until(lambda: gate.query("bad").exception() is not None, gate)
    consume(gate, offered, but=("bad",))
    gate.stop()
    assert gate.query("bad").state == "FAILED"
    assert gate.totals()["bad"][1] == 0
    balanced(gate)


def test_what_cannot_be_cut_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    write_readings(tmp_path / "source", files=1, rows=1)
    gate = gate_over(spark, tmp_path, PLAIN)
    with pytest.raises(QueryRefused, match="query 'x': cut is possible only between a condition"):
        gate.add_query(Query(name="x", sql="SELECT * FROM sensors", query_class="H", cut=True))
    gate.stop()


def test_a_query_that_got_another_text_is_cut_again_where_it_stands(
    spark: SparkSession, tmp_path: Path
) -> None:
    def started(sql: str) -> Headgate:
        gate = gate_over(spark, tmp_path, PLAIN)
        gate.add_query(Query(name="q", sql=sql, query_class="H", cut=True))
        gate.start()
        return gate

    old, new = CUT["hot"], CUT["dry"]
    offered = write_readings(tmp_path / "source", 1, rows=50)
    gate = started(old)
    consume(gate, offered)
    gate.alter_query("q", sql=new)
    offered += write_readings(tmp_path / "source", 1, rows=50, first_file=1)
    consume(gate, offered)
    gate.stop()
    gate = started(new)
    offered += write_readings(tmp_path / "source", 1, rows=50, first_file=2)
    consume(gate, offered)
    gate.stop()
    balanced(gate)
    rows = committed_rows(tmp_path / "state/results/q.v2")
    assert rows == expected_rows(f"{new} AND ts >= to_timestamp(1)", tmp_path / "source")
