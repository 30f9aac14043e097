"""A check compares the texts of queries with those of the last run, and changes nothing."""

import json
from pathlib import Path

import pytest
from kit.pipelines import ALL, pipeline_file
from kit.terminal import Terminal

from headgate.errors import RecoveryRefused
from headgate.runtime.live.changes import Changes
from headgate.spark.engine.history import other_texts
from headgate.spark.journal.cursors import Cursors
from headgate.spark.journal.journal import Journal

OLD = "SELECT location FROM sensors"


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Return the state directory of a run that has ended."""
    journal = Journal(tmp_path / "state")
    for query in ("hot", "all", "altered"):
        Cursors(journal).remember(query, OLD, "sensors")
    journal.close()
    return tmp_path / "state"


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}


def test_other_texts_are_refused_as_by_a_start_and_nothing_changes(state: Path) -> None:
    before = contents(state)
    refusals = other_texts(state, {"hot": OLD, "all": "SELECT 1 FROM sensors", "new": OLD})
    assert contents(state) == before
    journal = Journal(state)
    with pytest.raises(RecoveryRefused) as refused:
        Cursors(journal).refuse_other_texts({"all": "SELECT 1 FROM sensors"})
    assert {name: str(error) for name, error in refusals.items()} == {"all": str(refused.value)}
    assert set(other_texts(state, {"all": "SELECT 1 FROM sensors"})) == {"all"}  # while one runs
    journal.close()
    assert other_texts(state / "none", {"all": OLD}) == {}


@pytest.mark.spark
@pytest.mark.slow
def test_a_check_names_the_queries_that_a_start_would_refuse(
    state: Path, terminal: Terminal, tmp_path: Path
) -> None:
    Changes(state).note(1.0, "page", "sql", name="altered", after=OLD)
    file = pipeline_file(tmp_path, queries={"all": ALL, "altered": ALL, "new": ALL})
    before = contents(state)
    done = terminal.run("check", file, "--json")
    assert done.returncode == 2, done.stderr
    (mistake,) = json.loads(done.stdout)["mistakes"]
    assert mistake["key"] == "queries.all.sql"
    assert f"expected the text of the last run, {OLD!r}, found {ALL['sql']!r}" in mistake["text"]
    assert "change it by `headgate alter` during the run" in mistake["text"]
    assert contents(state) == before
    assert terminal.run("check", file, "--fresh").returncode == 0
