"""Parts that queries have in common run once, and every query still gets its answer."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from independent import committed_rows, expected_rows
from kit.engines import names_of
from pyspark.sql import SparkSession
from sources import balanced, consume, gate_over, write_readings

from headgate.model.events import StepFinished
from headgate.runtime import Drawing
from headgate.spark.sharing.group_plan import Prepared
from headgate.spark.sharing.whole_query import WholeQuery
from headgate.spark.windows.closing import ClosingWindows

pytestmark = pytest.mark.spark

MEAN = (
    "SELECT location, count(*) AS n, window.end AS until FROM sensors"
    " [RANGE 4 SECONDS SLIDE 2 SECONDS] GROUP BY location"
)
WORDS = "SELECT location, word FROM sensors LATERAL VIEW explode(split(location, '_')) w AS word"
HOT = "SELECT location, temperature * 2 AS twice FROM sensors WHERE temperature > 30"
TEXTS = {
    "mean": ("H", MEAN),
    "mean_again": ("H", f"  {MEAN}\n"),
    "mean_of_others": ("N", MEAN),
    "words": ("N", WORDS),
    "words_again": ("N", WORDS),
    "hot": ("C", HOT),
    "hot_again": ("C", HOT),
    "hotter": ("C", HOT.replace("30", "31")),
}


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Return a counter of how often closed windows and whole queries are computed."""
    counts: Counter[str] = Counter()
    windowed, alone = ClosingWindows.__call__, Prepared.run

    def of_windows(self: ClosingWindows, *args: Any) -> Any:
        counts["windows"] += 1
        return windowed(self, *args)

    def of_plan(self: Prepared, session: Any, lane: Any, trains: Any, names: Any, tag: Any) -> Any:
        if isinstance(self.group, WholeQuery):
            counts.update(names)
        return alone(self, session, lane, trains, names, tag)

    monkeypatch.setattr(ClosingWindows, "__call__", of_windows)
    monkeypatch.setattr(Prepared, "run", of_plan)
    return counts


@pytest.mark.parametrize("share", ["class", "all", pytest.param("none", marks=pytest.mark.long)])
def test_equal_queries_are_answered_once(
    spark: SparkSession, tmp_path: Path, computed: Counter[str], share: str
) -> None:
    offered = write_readings(tmp_path / "source", files=5, rows=2000)
    gate = gate_over(spark, tmp_path, TEXTS, share=share, policy="rr", train_tuples=1)
    together: Counter[frozenset[str]] = Counter()
    closed: list[int] = []

    def hear(event: object) -> None:
        if isinstance(event, StepFinished):
            called = names_of(gate, event.call)
            together[frozenset(called)] += 1
            if "mean" in called:
                closed.append((event.instants or event.tuples_out)[called.index("mean")])

    gate.start(listeners=[hear])
    consume(gate, offered)
    explained = {name: gate.explanation(name) for name in TEXTS}
    gate.stop()
    balanced(gate)
    source = tmp_path / "source"
    results = {name: committed_rows(tmp_path / "state" / "results" / name) for name in TEXTS}
    assert results["hot"] == results["hot_again"] == expected_rows(HOT, source)
    assert results["hotter"] == expected_rows(TEXTS["hotter"][1], source)
    assert results["words"] == results["words_again"]
    assert results["words"] == expected_rows(
        "SELECT location, unnest(string_split(location, '_')) FROM sensors", source
    )
    assert results["mean"] == results["mean_again"] == results["mean_of_others"]
    assert results["mean"]
    # A policy counts an aggregate's output in windows, however many groups they have.
    assert sum(closed) == len({until for *_, until in results["mean"]}) < len(results["mean"])
    means = [units for units in together.elements() if "mean" in "".join(units)]
    if share == "none":
        assert {len(units) for units in means} == {1}
        assert computed["windows"] == len(means)
        assert explained["mean"].shares_code_with == []
        return
    # Each query is probed alone first; then they are at the same train and run together.
    everyone = share == "all"
    equal = ("mean", "mean_again", "mean_of_others")[: 3 if everyone else 2]
    for group in (equal, ("words", "words_again")):
        assert [together[frozenset({name})] for name in group] == [1] * len(group)
        assert together[frozenset(group)] > 0
    assert computed["windows"] == len(means)
    words = [units for units in together.elements() if "words" in "".join(units)]
    assert computed["words"] + computed["words_again"] == len(words)
    assert explained["mean"].shares_code_with == list(equal[1:])
    assert f"one answer for {len(equal)} equal queries" in str(explained["mean"].shape)
    assert explained["mean_of_others"].shares_code_with == list(equal[:2]) * everyone
    assert "hot_again" in explained["hot"].shares_code_with
    drawn = gate.drawing()
    assert equal in [part.queries for part in drawn.parts]
    assert drawn == Drawing.from_dict(json.loads(json.dumps(drawn.to_dict())))
    assert f"one answer for {len(equal)} equal queries" in drawn.text()
    assert f"one answer for {len(equal)} equal queries" in drawn.html()


FROM = (
    "FROM sensors [RANGE 1 SECOND] a JOIN sensors [RANGE 1 SECOND] b"
    " ON a.location = b.location AND a.temperature < b.temperature"
)
JOINS = {
    "pairs": ("H", f"SELECT a.location, a.ts AS early, b.ts AS late {FROM}"),
    "heat": ("H", f"SELECT b.temperature - a.temperature AS more {FROM}"),
    "far": ("H", f"SELECT a.location {FROM} WHERE a.humidity > b.humidity + 20"),
    "dry": ("H", f"SELECT a.humidity AS x {FROM} WHERE a.humidity IN ({str([*range(12)])[1:-1]})"),
    "wet": (
        "H",
        f"SELECT a.humidity AS x {FROM} WHERE a.humidity IN ({str([*range(50, 62)])[1:-1]})",
    ),
}


def test_queries_with_a_join_in_common_run_together(spark: SparkSession, tmp_path: Path) -> None:
    offered = write_readings(tmp_path / "source", files=5, rows=300)
    gate = gate_over(spark, tmp_path, JOINS, lane="driver", policy="rr", train_tuples=1)
    together: Counter[int] = Counter()

    def hear(event: object) -> None:
        if isinstance(event, StepFinished):
            together[len(event.call.units)] += 1

    gate.start(listeners=[hear])
    consume(gate, offered)
    explained = gate.explanation("heat")
    gate.stop()
    balanced(gate)
    assert "a join in common with 4" in str(explained.shape)
    assert max(together) > 1  # after each was probed alone
    for name, (_, sql) in JOINS.items():
        oracle = sql.replace(" [RANGE 1 SECOND]", "")
        end = " AND " if "WHERE" in oracle else " WHERE "
        near = "abs(epoch_us(a.ts) - epoch_us(b.ts)) <= 1000000"
        results = committed_rows(tmp_path / "state" / "results" / name)
        assert results == expected_rows(oracle + end + near, tmp_path / "source"), name
        assert results, name
