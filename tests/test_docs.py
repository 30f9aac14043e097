"""README and docs say what the program does: examples are executed, pages are compared."""

import contextlib
import importlib.util
import io
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from kit.commands import Done, headgate
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import headgate as hg
from headgate.cli.app import app
from headgate.config import SinkConfig, read_pipeline
from headgate.experiments.papers import EXPERIMENTS
from headgate.extensions.built_in_sinks import SINKS
from headgate.runtime.pipeline import unread_paths
from headgate.spark.sources.kafka_options import OPTIONS, Subscription, subscription_of

ROOT = Path(__file__).parents[1]
FORMATS = tuple(entry.name for entry in SINKS)
README = (ROOT / "README.md").read_text()


def _module(path: str) -> Any:
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def fresh() -> dict[str, Any]:
    """Return the reference page and the names of all policies, as a new process knows them.

    Typer fixes the width of the help when it is imported, and other tests register policies too.
    """
    code = """
import json, runpy
from headgate.policies import policies
page = runpy.run_path("docs/write_reference.py")["reference"]()
names = [name for policy in policies().values() for name in (policy.name, *policy.aliases)]
print(json.dumps({"reference": page, "policies": names}))
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    answers: dict[str, Any] = json.loads(done.stdout)
    return answers


def test_the_reference_page_is_what_the_program_prints(fresh: dict[str, Any]) -> None:
    assert (ROOT / "docs/reference.md").read_text() == fresh["reference"]


@pytest.mark.slow
@pytest.mark.parametrize("page", ["README.md", "docs/policies.md"])
def test_commands_print_what_the_page_says(page: str) -> None:
    text = (ROOT / page).read_text()
    assert "```console" in text
    assert _module("docs/write_examples.py").filled(text, _run_here) == text


def _run_here(words: Sequence[str], folder: str) -> Done:
    with contextlib.chdir(folder):
        return headgate(*words)


def test_every_policy_is_in_the_table_by_rows_of_the_papers(fresh: dict[str, Any]) -> None:
    page = (ROOT / "docs/policies.md").read_text()
    rows = re.findall(r"^\| (P\d+) \| (.*?) \|", page, re.MULTILINE)
    assert set(re.findall(r"`(.*?)`", str(rows))) == set(fresh["policies"])
    assert {row for row, _ in rows} == {f"P{number}" for number in range(1, 24)}


@pytest.mark.parametrize("page", ["README.md", "docs/benchmarks.md", "docs/reliability.md"])
def test_figures_are_those_of_the_last_results(page: str) -> None:
    text = (ROOT / page).read_text()
    assert "<!-- generated: " in text
    assert _module("bench/tables.py").filled(text) == text


def test_the_page_of_the_papers_has_the_verdicts_of_the_last_report() -> None:
    module = _module("docs/write_papers.py")
    figures = json.loads(module.REPORT.read_text())["figures"]
    assert {figure["id"] for figure in figures} <= set(EXPERIMENTS)
    assert module.PAGE.read_text() == module.page_of(figures)
    assert module.REPORT.stat().st_size < 1_000_000


def test_the_readme_is_short_and_its_links_lead_somewhere() -> None:
    assert len(README.splitlines()) <= 150
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *ROOT.glob("[CS]*.md")]:
        for link in re.findall(r"\]\(([^)#:]+)(?:#[\w-]+)?\)", page.read_text()):
            assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_every_public_name_is_on_the_api_page() -> None:
    page = (ROOT / "docs/api.md").read_text()
    assert set(re.findall(r"^\| `(\w+)` ", page, re.MULTILINE)) == set(hg.__all__)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    ["README.md", "docs/policies.md", "docs/extending.md", "docs/sinks.md", "docs/windows.md"],
)
def test_python_examples_print_what_the_page_says(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: str
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / page).read_text()
    examples = re.findall(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```)?", text, re.DOTALL)
    assert examples
    for code, printed in examples:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(code, page, "exec"), {})
        assert out.getvalue() == printed


def test_every_sink_has_a_line_and_an_example_that_is_one() -> None:
    page = (ROOT / "docs/sinks.md").read_text()
    assert tuple(re.findall(r"^\| `(\w+)` ", page, re.MULTILINE)) == FORMATS
    guarantees = dict(re.findall(r"^\| `(\w+)` \| [^|]* \| ([^|]*) \|", page, re.MULTILINE))
    assert guarantees.pop("memory") == "once in a run"  # there is nothing left after a crash
    for entry in SINKS:
        assert guarantees.get(entry.name, entry.delivery).startswith(entry.delivery)
    examples = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    configs = [yaml.safe_load(example)["sink"] for example in examples]
    sinks = [SinkConfig.model_validate(config).model() for config in configs]
    assert [sink.mistake() for sink in sinks] == [None] * len(sinks)
    assert {sink.format for sink in sinks} | {"memory", "callback"} == set(FORMATS)


def test_examples_of_sources_are_pipelines_whose_options_the_driver_knows(tmp_path: Path) -> None:
    page = (ROOT / "docs/sources.md").read_text()
    (example,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    file = tmp_path / "pipeline.yaml"
    file.write_text(f"state: state\nclasses: {{H: 1}}\n{example}")
    (stream,) = read_pipeline(file).stream_models()
    subscription = subscription_of(stream.name, stream.options)
    assert isinstance(subscription, Subscription)
    assert subscription.topics == ("readings", "alarms")
    listed = re.findall(r"^\| `([a-z][A-Za-z]+)` \| ", page, re.MULTILINE)
    assert {name.lower() for name in listed} >= OPTIONS


def test_the_example_of_views_is_a_pipeline(tmp_path: Path) -> None:
    (example,) = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs/views.md").read_text(), re.DOTALL)
    file = tmp_path / "pipeline.yaml"
    file.write_text(f"state: state\nclasses: {{critical: 6, normal: 1}}\n{example}")
    paths, streams = unread_paths(read_pipeline(file))
    assert [path.into for path in paths] == ["readings", None, None]
    assert [stream.name for stream in streams] == ["raw", "readings", "readings__time"]


def test_the_example_of_the_tutorial_is_a_pipeline(tmp_path: Path) -> None:
    page = (ROOT / "docs/tutorial.md").read_text()
    (example,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    file = tmp_path / "tutorial.yaml"
    file.write_text(example)
    paths, _ = unread_paths(read_pipeline(file))
    assert [path.query.name for path in paths] == ["fire", "warmth"]


def test_commands_of_the_pages_exist() -> None:
    pages = [
        README,
        *((ROOT / "docs" / name).read_text() for name in ("tutorial.md", "operate.md")),
    ]
    commands = {
        command
        for page in pages
        for command in re.findall(r"^(?:\$ )?headgate (\w+)", page, re.MULTILINE)
    }
    assert {"run", "check", "compare", "status", "replay", "set", "stop"} <= commands
    for command in sorted(commands):
        assert CliRunner().invoke(app, [command, "--help"]).exit_code == 0
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"make ([a-z-]+)", README)) <= targets
