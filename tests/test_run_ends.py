"""How a `headgate run` ends: while it starts, by a signal, by Ctrl-C."""

import json
import re
from pathlib import Path

import pytest
from kit.commands import headgate, refused, status_of
from kit.pipelines import SPARK_NOISE, pipeline_file
from kit.terminal import Terminal
from kit.waiting import until

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_a_run_that_is_starting_can_be_asked_and_ended(terminal: Terminal, tmp_path: Path) -> None:
    run, state = terminal.start("run", pipeline_file(tmp_path, rehearsal_s=600)), tmp_path / "state"
    until((state / "control.json").exists, run.ended)
    progress = r"starting: \d of 2 queries rehearsed by process \d+\n"
    done = headgate("status", "--state", str(state))
    assert re.fullmatch(progress, done.stdout), (done.stdout, done.stderr)
    status = json.loads(headgate("status", "--state", str(state), "--json").stdout)
    assert [query["state"] for query in status["queries"]] == ["STARTING", "STARTING"]
    for words in (("explain", "hot"), ("why", "hot"), ("set", "policy", "rr"), ("drop", "hot")):
        refused(headgate(*words, "--state", str(state)), "the run is starting: process ")
    done = headgate("stop", "--state", str(state))
    assert (done.returncode, done.stdout) == (0, f"stopped: {state}\n"), done.stderr
    assert run.done(60).returncode == 0
    assert not (state / "control.json").exists()
    assert "stopped before the first tuple; a new start resumes" in run.stderr
    assert not any(noise in run.stderr for noise in SPARK_NOISE)


def test_a_run_that_is_terminated_ends_cleanly(terminal: Terminal, tmp_path: Path) -> None:
    run, state = terminal.start("run", pipeline_file(tmp_path), "--json"), tmp_path / "state"
    until((state / "control.json").exists, run.ended)
    until(lambda: (line := status_of(state)["all"])["account"] and line["account"]["delivered"])
    terminal.terminate()
    assert run.done(60).returncode == 0
    assert not (state / "control.json").exists()
    (report,) = json.loads(run.stdout)
    assert report["total"]["tuples_in"] > 0
    refused(headgate("status", "--state", str(state)), "found no control.json.\nFix: start one")


def test_a_run_that_is_interrupted_stops_cleanly(terminal: Terminal, tmp_path: Path) -> None:
    run = terminal.start("run", pipeline_file(tmp_path))
    until(lambda: list((tmp_path / "state/results/all").glob("*.parquet")), run.ended)
    terminal.interrupt()
    assert run.done(60).returncode == 130
    assert "stopped; what is committed is kept, a new start resumes" in run.stderr
    assert not any(noise in run.stderr for noise in SPARK_NOISE)
