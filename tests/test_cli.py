"""The command line as a user meets it: what it prints, where, and its exit code."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from headgate.cli.app import app

QUERIES = {
    "hot": {"class": "H", "sql": "SELECT location, ts FROM sensors WHERE temperature > 35"},
    "all": {"class": "N", "sql": "SELECT temperature FROM sensors"},
}
KNOWN = {"cost_s": 1e-5, "selectivity": 0.5, "overhead_s": 0.05}
SPARK_NOISE = ("WARN", "Traceback", "log4j", "incubator", "org.apache")


def _pipeline(folder: Path, **changes: object) -> str:
    stream = {"format": "headgate", "options": {"rate_per_s": 200}, "arrival_time": "ts"}
    pipeline = {
        "state": str(folder / "state"),
        "rehearsal_s": 1,
        "spark": {"master": "local[2]"},
        "classes": {"H": 6, "N": 1},
        "streams": {"sensors": stream},
        "queries": QUERIES,
        **changes,
    }
    file = folder / "pipeline.yaml"
    file.write_text(yaml.safe_dump(pipeline))
    return str(file)


def _headgate(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "headgate.cli", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=180)


def test_policies_are_listed_with_paper_and_objective() -> None:
    result = CliRunner().invoke(app, ["policies", "--json"])
    listed = {entry["name"]: entry for entry in json.loads(result.stdout)}
    assert {"rr", "fcfs", "hr", "hnr", "bsd", "cqc"} <= set(listed)
    assert listed["hnr"]["paper"] == "Sharaf eq 3.4"
    assert listed["hnr"]["objective"] == "mean slowdown"


def test_a_policy_is_explained_with_its_rule() -> None:
    result = CliRunner().invoke(app, ["policies", "hnr"])
    assert "S / (C̄ T)" in result.stdout


def test_a_pipeline_is_simulated_at_the_costs_of_the_file(tmp_path: Path) -> None:
    queries = {name: {**query, "statistics": KNOWN} for name, query in QUERIES.items()}
    file = _pipeline(tmp_path, queries=queries)
    words = ["simulate", file, "--policy", "hr,cqc", "--seconds", "5", "--json"]
    reports = json.loads(CliRunner().invoke(app, words).stdout)
    assert [report["policy"] for report in reports] == ["hr", "cqc"]
    assert reports[0]["total"]["tuples_in"] == 2 * 5 * 200


def test_a_simulation_uses_what_a_run_has_recorded(tmp_path: Path) -> None:
    queries = {name: {**query, "statistics": KNOWN} for name, query in QUERIES.items()}
    file = _pipeline(tmp_path, queries=queries)
    words = ["simulate", file, "--seconds", "5", "--json"]
    slow = {name: {**KNOWN, "overhead_s": 0.5} for name in QUERIES}
    quick_mean = json.loads(CliRunner().invoke(app, words).stdout)[0]["total"]["response_s"]["mean"]
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "statistics.json").write_text(json.dumps({"queries": slow}))
    slow_mean = json.loads(CliRunner().invoke(app, words).stdout)[0]["total"]["response_s"]["mean"]
    assert slow_mean > quick_mean + 0.4


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("simulate", "{file}"), "cost and selectivity are not known for: all, hot"),
        (("simulate", "{file}", "--policy", "hnrr"), "Did you mean 'hnr'?"),
        (("policies", "cqq"), "there is no policy 'cqq'. Did you mean 'cqc'?"),
        (("run", "missing.yaml"), "missing.yaml: the file must be a readable file"),
    ],
)
def test_a_wrong_request_is_a_sentence_and_exit_code_2(
    tmp_path: Path, words: tuple[str, ...], says: str
) -> None:
    file = _pipeline(tmp_path)
    done = _headgate(*(word.format(file=file) for word in words))
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


@pytest.mark.spark
@pytest.mark.slow
def test_check_answers_a_mistyped_query_with_its_line(tmp_path: Path) -> None:
    typo = {"class": "H", "sql": "SELECT location\nFROM sensors\nWHERE temprature > 3"}
    done = _headgate("check", _pipeline(tmp_path, queries={"typo": typo}))
    assert done.returncode == 2
    assert "query 'typo', line 3: column `temprature` does not exist in the stream" in done.stderr
    assert "Fix: use one of `temperature`" in done.stderr
    assert not any(noise in done.stderr for noise in SPARK_NOISE)


@pytest.mark.spark
@pytest.mark.slow
def test_a_run_ends_with_a_report_and_keeps_the_screen_clean(tmp_path: Path) -> None:
    done = _headgate("run", _pipeline(tmp_path), "--seconds", "3", "--json")
    assert done.returncode == 0, done.stderr
    assert not any(noise in done.stderr for noise in SPARK_NOISE)
    report = json.loads(done.stdout)[0]
    assert report["total"]["pending"] == 0
    assert report["total"]["tuples_in"] >= 2 * 3 * 200 * 0.5
    assert report["total"]["response_s"]["mean"] > 0
    assert set(json.loads((tmp_path / "state/statistics.json").read_text())["queries"]) == set(
        QUERIES
    )


@pytest.mark.spark
@pytest.mark.slow
def test_ctrl_c_stops_cleanly(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "headgate.cli", "run", _pipeline(tmp_path)]
    run = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    _wait_for_results(run, tmp_path / "state" / "results" / "all")
    os.killpg(run.pid, signal.SIGINT)
    _, errors = run.communicate(timeout=60)
    assert run.returncode == 130
    assert "stopped; what is committed is kept, a new start resumes" in errors
    assert not any(noise in errors for noise in SPARK_NOISE)


def _wait_for_results(run: subprocess.Popen[str], folder: Path) -> None:
    for _ in range(1200):
        if list(folder.glob("*.parquet")):
            return
        try:
            run.wait(0.1)
        except subprocess.TimeoutExpired:
            continue
        break
    raise AssertionError(run.communicate()[1])
