"""A Headgate from a pipeline file, with what requests have changed in earlier runs."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kit.pipelines import ALL, SENSORS, pipeline_file
from pyspark.sql import SparkSession

from headgate import Headgate, load
from headgate.config import read_pipeline
from headgate.runtime.live.changes import Changes, Kind

pytestmark = pytest.mark.spark

Start = Callable[..., Headgate]


@pytest.fixture
def start(spark: SparkSession, tmp_path: Path) -> Iterator[Start]:
    """Return a function that loads a pipeline after changes of earlier runs."""
    gates: list[Headgate] = []

    def loaded(*changes: tuple[Kind, dict[str, Any]], **of_file: Any) -> Headgate:
        log = Changes(tmp_path / "state")
        (tmp_path / "state").mkdir(exist_ok=True)
        for kind, values in changes:
            log.note(1.0, "command", kind, **values)
        gates.append(load(read_pipeline(pipeline_file(tmp_path, **of_file), {}), spark=spark))
        return gates[-1]

    yield loaded
    for gate in gates:
        gate.stop()


def texts(gate: Headgate) -> dict[str, str]:
    return {query.name: gate.explanation(query.name).sql for query in gate.queries}


def added(**sections: Any) -> tuple[Kind, dict[str, Any]]:
    names = ", ".join((*sections.get("streams", ()), *sections.get("queries", ())))
    return "add", {"name": names, "after": sections}


def test_a_query_of_the_file_may_read_what_was_added(start: Start) -> None:
    other = "SELECT humidity FROM others"
    gate = start(
        added(streams={"others": SENSORS}), ("sql", {"name": "hot", "after": other}),
    )  # fmt: skip
    assert texts(gate) == {"hot": other, "all": ALL["sql"]}


def test_what_was_added_and_dropped_and_added_again_has_its_last_text(start: Start) -> None:
    old, new = {**ALL, "sql": "SELECT location FROM sensors"}, {**ALL, "sql": "SELECT 1 FROM late"}
    gate = start(
        added(queries={"a": old, "b": ALL}),
        ("drop", {"name": "a"}),
        added(streams={"late": SENSORS}),
        added(queries={"a": new}),
    )
    assert texts(gate)["a"] == new["sql"]
    assert texts(gate)["b"] == ALL["sql"]


def test_what_does_not_fit_any_more_is_left_out(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    gate = start(
        ("policy", {"after": "mine"}),
        ("query", {"name": "hot", "after": {"class": "X"}}),
        ("query", {"name": "hot", "after": {"weight": 2.0}}),
        added(queries={"lost": {**ALL, "sql": "SELECT 1 FROM nowhere"}, "kept": ALL}),
        policy={"name": "hr"},
    )
    assert gate.policy.name == "hr"
    assert set(texts(gate)) == {"hot", "all", "kept"}
    assert gate.values_of("hot")["class"] == "H"
    assert gate.values_of("hot")["weight"] == 2.0
    assert "policy mine, set by request, is left out: " in caplog.text
    assert "lost, added by request, is left out: " in caplog.text
    assert "kept was added and is not in the file" in gate.status()["differs"]
    assert "lost" not in str(gate.status()["differs"])
