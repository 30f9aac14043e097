"""Views of a pipeline file that does not run: explained, drawn, and simulated."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from headgate.config import fragment_of, read_pipeline
from headgate.errors import ConfigRefused, HeadgateError
from headgate.model.network.unit_table import unit_table
from headgate.model.network.units import units_of
from headgate.runtime.describe.drawing import drawn
from headgate.runtime.describe.explanation import explained
from headgate.runtime.pipeline import simulated_parts
from headgate.runtime.what_if.workload import workload
from headgate.scheduler.feeds import feeds_of, follow

CLASSES = {"N": 1, "H": 6, "C": 3}


def _figures(selectivity: float) -> dict[str, float]:
    return {"cost_s": 1e-4, "selectivity": selectivity, "overhead_s": 0.001}


VIEWS = {
    # A view may stand before the one that it reads.
    "hot": {"sql": "SELECT * FROM parsed WHERE v > 3", "statistics": _figures(0.5)},
    "parsed": {
        "sql": "SELECT from_json(value, 'v INT').v AS v FROM raw", "event_time": "ts",
        "lateness_s": 2, "statistics": _figures(1.0),
    },
    "idle": {"sql": "SELECT value FROM raw", "statistics": _figures(1.0)},
}  # fmt: skip
QUERIES = {
    "all": ("N", "SELECT v FROM parsed", 1.0),
    "half": ("C", "SELECT v FROM hot", 1.0),
    "counts": ("H", "SELECT count(*) AS n FROM hot [RANGE 9 SECONDS SLIDE 3 SECONDS]", 1.0),
    "near": (
        "N", "SELECT x.v FROM parsed [RANGE 1 SECOND] x JOIN raw [RANGE 1 SECOND] y ON true", 1.0
    ),
}  # fmt: skip


@pytest.fixture
def data(tmp_path: Path) -> dict[str, Any]:
    queries = {
        name: {"class": query_class, "sql": sql, "statistics": _figures(selectivity)}
        for name, (query_class, sql, selectivity) in QUERIES.items()
    }
    raw = {"format": "parquet", "schema": "value STRING", "arrivals": {"rate_per_s": 100}}
    return {
        "state": str(tmp_path / "state"), "classes": CLASSES, "policy": {"name": "hr"},
        "streams": {"raw": raw}, "views": VIEWS, "queries": queries,
    }  # fmt: skip


def _read(data: dict[str, Any], tmp_path: Path) -> Any:
    file = tmp_path / "pipeline.yaml"
    file.write_text(yaml.safe_dump(data))
    return read_pipeline(file)


def test_a_view_works_for_its_readers(data: dict[str, Any], tmp_path: Path) -> None:
    parts = simulated_parts(_read(data, tmp_path))
    network = parts.network
    classes = {path.query.name: path.query.query_class for path in network.paths}
    assert (classes["parsed"], classes["hot"], classes["idle"]) == ("H", "H", "N")
    sheds = {path.query.name: path.query.allows_shedding for path in network.paths}
    assert (sheds["parsed"], sheds["hot"], sheds["idle"]) == (False, False, True)
    units = units_of(network)
    table = unit_table(units, parts.statistics)
    follow(table, feeds_of(units))
    number = {path.query.name: unit for unit, path in enumerate(network.paths)}
    assert [table["query_class"][number[name]] for name in classes] == [
        network.class_number(query_class) for query_class in classes.values()
    ]
    # S counts all results behind a view: 1 each of `all` and `near`, 0.5 · (1 + 1) through `hot`.
    worth = {name: float(table["selectivity"][unit]) for name, unit in number.items()}
    assert worth == {**dict.fromkeys((*VIEWS, *QUERIES), 1.0), "parsed": 3.0, "hot": 1.0}
    assert table["tuple_cost_s"][number["parsed"]] == pytest.approx(1e-4 * (1 + 2 + 1 + 0.5 * 2))
    spent_s = float(table["ideal_s"][number["counts"]])
    assert spent_s == pytest.approx(3 * 0.0011)
    assert unit_table(units, parts.statistics)["stream"].tolist() == [
        network.stream_number(path.stream) for path in network.paths
    ]


def test_what_a_view_makes_reaches_its_readers_in_a_simulation(
    data: dict[str, Any], tmp_path: Path
) -> None:
    scenario = workload(_read(data, tmp_path), seconds=5)
    for policy in ("hr", "fcfs", "cqc"):
        report = scenario.simulate(policy)
        tuples_in = {query.name: query.tuples_in for query in report.queries}
        results = {query.name: query.response_s.count for query in report.queries}
        offered = len(scenario.arrivals["raw"])
        assert tuples_in["parsed"] == tuples_in["all"] == tuples_in["idle"] == offered
        assert tuples_in["half"] == tuples_in["counts"] == pytest.approx(offered / 2, rel=0.2)
        assert tuples_in["near"] == 2 * offered
        assert results["all"] == offered
        assert results["parsed"] == results["hot"] == 0
        # A response counts from the arrival at the source, so all costs on the way are in it.
        least = {query.name: query.response_s.mean for query in report.queries}
        assert np.all(np.array([least["half"], least["counts"]]) >= 3 * 1e-4)


def test_views_are_explained_and_drawn(data: dict[str, Any], tmp_path: Path) -> None:
    pipeline = _read(data, tmp_path)
    view = explained(pipeline, "parsed")
    assert (view.sink, view.reads) == ("stream parsed", ["raw"])
    assert explained(pipeline, "counts").reads == ["hot"]
    text = drawn(pipeline).text()
    assert "parsed (derived)" in text
    assert "→ stream hot" in text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"a": "b", "b": "c", "c": "a"}, "cycle is 'a -> c -> b -> a', but must be removed"),
        ({"a": "a"}, "query 'a': FROM a is the stream that it fills"),
        ({"a": "nowhere"}, "nowhere"),
        ({"raw": "parsed"}, "views.raw is 'raw', but must be another name: a stream has it"),
        ({"all": "raw"}, "views.all is 'all', but must be another name: a query has it"),
    ],
)
def test_views_that_cannot_be_are_refused(
    data: dict[str, Any], tmp_path: Path, change: dict[str, str], message: str
) -> None:
    more = {
        name: {"sql": f"SELECT * FROM {source}", "statistics": _figures(1.0)}
        for name, source in change.items()
    }
    with pytest.raises(HeadgateError) as refused:
        simulated_parts(_read({**data, "views": {**VIEWS, **more}}, tmp_path))
    assert message in str(refused.value)


def test_a_fragment_may_have_views_alone() -> None:
    fragment = fragment_of({"views": {"v": {"sql": "SELECT 1"}}}, "here", CLASSES)
    (query,) = fragment.query_models()
    assert (query.name, query.into, query.query_class) == ("v", "v", "N")
    with pytest.raises(ConfigRefused, match="a mapping with streams, views or queries"):
        fragment_of({}, "here", CLASSES)
