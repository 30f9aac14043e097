"""Windowed queries of a file that does not run: explained, and simulated."""

from pathlib import Path

import numpy as np
import pytest
import yaml

from headgate.config import read_pipeline
from headgate.errors import StatisticsMissing
from headgate.runtime.describe.explanation import explained
from headgate.runtime.what_if.workload import workload

FIGURES = {"cost_s": 1e-4, "selectivity": 0.1, "overhead_s": 0.01}
QUERIES = {
    "sliding": "SELECT k, count(*) AS n FROM a [RANGE 9 SECONDS SLIDE 3 SECONDS] GROUP BY k",
    "spark": "SELECT window.start AS w, count(*) AS n FROM a GROUP BY window(ts, '5 seconds')",
    "join": "SELECT x.k FROM b [RANGE 1 SECOND] x JOIN a [RANGE 2 SECONDS] y ON x.k = y.k",
    "bounded": "SELECT x.k FROM a x JOIN b y ON x.k = y.k AND x.ts <= y.ts AND x.ts > y.ts -"
    " INTERVAL 5 SECONDS",
    "listed": "SELECT x.k, y.ts FROM a x, b y WHERE x.k = y.k AND x.ts = y.ts",
    "union": "SELECT k FROM a UNION ALL SELECT k FROM b",
    "table": "SELECT a.k FROM a JOIN parquet.`/names` t ON a.k = t.k",
    "plain": "SELECT k FROM b WHERE k > 3",
}
STREAMS = ["a__time", "a__time", *["a__b__time"] * 4, "a", "b"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    stream = {
        "format": "parquet", "options": {"path": "x"}, "schema": "k INT, ts TIMESTAMP",
        "event_time": "ts", "arrivals": {"rate_per_s": 50},
    }  # fmt: skip
    queries = {
        name: {"class": "H", "sql": sql, "statistics": FIGURES} for name, sql in QUERIES.items()
    }
    pipeline = {
        "state": str(tmp_path / "state"), "classes": {"H": 1},
        "streams": {"a": stream, "b": stream},
        "queries": queries, "policy": {"name": "edf"},
    }  # fmt: skip
    file = tmp_path / "pipeline.yaml"
    file.write_text(yaml.safe_dump(pipeline))
    return file


def test_queries_are_explained(file: Path) -> None:
    pipeline = read_pipeline(file)
    explanations = [explained(pipeline, name) for name in QUERIES]
    assert [explanation.stream for explanation in explanations] == STREAMS
    for explanation in explanations:
        assert explanation.sql == QUERIES[explanation.query]
        assert "class H" in explanation.text()


def test_queries_are_simulated(file: Path) -> None:
    scenario = workload(file, seconds=5)
    times = scenario.arrivals
    assert sorted(times) == ["a", "a__b__time", "a__time", "b"]
    assert len(times["a__b__time"]) == len(times["a"]) + len(times["b"]) > 100
    assert np.all(np.diff(times["a__b__time"]) >= 0)
    deadlines = {path.query.name: path.query.deadline_s for path in scenario.network.paths}
    assert (deadlines["sliding"], deadlines["spark"], deadlines["join"]) == (3.0, 5.0, None)
    report = scenario.simulate("edf")
    assert {query.name for query in report.queries} == set(QUERIES)


def test_a_cost_that_is_not_known_is_asked_for(file: Path) -> None:
    text = yaml.safe_load(file.read_text())
    del text["queries"]["join"]["statistics"]
    file.write_text(yaml.safe_dump(text))
    with pytest.raises(StatisticsMissing, match="join"):
        workload(file, seconds=5)
