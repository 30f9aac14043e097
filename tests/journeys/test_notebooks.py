"""The notebooks run, and the one without Spark prints what is written in it."""

from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat", reason="nbclient is not installed")
nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")

pytestmark = [pytest.mark.spark, pytest.mark.slow]

FOLDER = Path(__file__).parents[2] / "examples" / "notebooks"


def run(name: str) -> tuple[Any, Any]:
    """Return a notebook as it is written, and after it was run."""
    written = nbformat.read(FOLDER / name, as_version=4)
    notebook = nbformat.read(FOLDER / name, as_version=4)
    nbclient.NotebookClient(
        notebook, timeout=300, resources={"metadata": {"path": FOLDER}}
    ).execute()
    return written, notebook


def results(notebook: Any) -> list[dict[str, str]]:
    return [
        output["data"] for cell in notebook.cells for output in cell.get("outputs", ())
        if output["output_type"] in ("execute_result", "display_data")
    ]  # fmt: skip


def test_the_comparison_prints_what_is_written_in_it() -> None:
    written, notebook = run("compare.ipynb")
    assert results(notebook) == results(written)
    assert "<table>" in results(notebook)[0]["text/html"]


def test_the_live_notebook_runs_a_pipeline_and_stops_it() -> None:
    written, notebook = run("live.ipynb")
    classes, query, parts, report = results(notebook)
    assert "2 queries under cqc" in classes["text/html"]
    assert "query all" in query["text/html"]
    assert "running" in parts["text/plain"]
    assert "<td" in report["text/html"]
    assert len(results(written)) == 4
