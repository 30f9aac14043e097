"""kill −9 at named points and at random instants, then restart: nothing is lost or comes twice.

`test_chaos.py` has the short form.
"""

import json
import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from kill_pipeline import QUERIES, VIEWS, check_results, offer, write_pipeline
from kit.seeds import drawing_seed

from headgate.result_files import MANIFEST
from headgate.spark.journal.cursors import Cursors
from headgate.spark.journal.journal import Journal

pytestmark = [pytest.mark.spark, pytest.mark.slow]

WINDOWS = {
    "before the journal has the train": ["train written", "train named"],
    "before the sink is written": ["train journalled", "late tuples put aside"],
    "between sink and journal": ["result written", "results written"],
    "after the journal": ["step journalled", "result visible"],
    "while files are merged": ["files merged", "merge journalled", "replaced file removed"],
    "on the way to a receiver": ["delivery begun", "result delivered"],
    "between journal and removal": ["train dropped"],
}
"""Points that the engine reports while it runs, grouped by what a crash there interrupts."""

IN_RECOVERY = [("result visible", 2), ("result recovered", 1), ("result recovered", 1)]
"""A death that leaves a result to recover, then two deaths of runs while they recover it."""


def _start(file: Path, offered: dict[str, int], *more: object) -> subprocess.Popen[str]:
    script = Path(__file__).with_name("consumer.py")
    command = [sys.executable, str(script), str(file), json.dumps(offered), *map(str, more)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def _end(process: subprocess.Popen[str]) -> int:
    """Wait for the process to end, check every account that it printed, return its exit code."""
    out, errors = process.communicate(timeout=300)
    assert process.returncode in (0, -signal.SIGKILL), errors
    for line in out.splitlines():
        if line.startswith("{"):
            _check_accounts(json.loads(line))
    return process.returncode


def _check_accounts(accounts: dict[str, dict[str, int]]) -> None:
    assert set(accounts) == {*QUERIES, *VIEWS}
    for name, account in accounts.items():
        parts = ("delivered", "filtered", "queued", "shed", "missed", "late", "dead_lettered")
        assert account["arrived"] == sum(account[part] for part in parts), (name, account)
        assert not account["missed"], (name, account)  # no train was dropped that a query needs


def _check_journal(state: Path) -> None:
    """Check that the accounts in the journal add up just as the crash has left them."""
    journal = Journal(state)
    accounts = {name: vars(account) for name, account in Cursors(journal).accounts().items()}
    journal.close()
    if accounts:
        _check_accounts(accounts)


def _kill_at(folder: Path, ingest: str, points: list[tuple[str, int]]) -> None:
    """Kill one run per point when it reaches the point for the n-th time, then run to the end.

    A consumer takes visible results away before the next run begins.
    """
    file, files = write_pipeline(folder, ingest), 6
    consumed: dict[Path, Path] = {}
    for number, (point, times) in enumerate(points):
        # More files than any point needs, so that the run is certain to reach it.
        offered = offer(folder, number * files, files)
        killed = _end(_start(file, offered, point, times))
        assert killed == -signal.SIGKILL, f"the run never reached '{point}' {times} times"
        _check_journal(folder / "state")
        for result in (folder / "state/results").glob("*/[0-9]*"):
            if not (result.parent / MANIFEST).exists():  # else it may still be compacted
                consumed[result] = result.rename(folder / f"consumed-{len(consumed)}")
    assert _end(_start(file, offered)) == 0
    for result, moved_file in consumed.items():
        moved_file.rename(result)
    check_results(folder, len(points))


@pytest.mark.long
@pytest.mark.parametrize("ingest", ["auto", "spark"])
@pytest.mark.parametrize("window", WINDOWS)
def test_twenty_deaths_in_every_window(tmp_path: Path, window: str, ingest: str) -> None:
    rng = random.Random(f"{drawing_seed()} {window} {ingest}")
    points = [(rng.choice(WINDOWS[window]), rng.randint(1, 3)) for _ in range(20)]
    print(points)
    _kill_at(tmp_path, ingest, points)


@pytest.mark.long
@pytest.mark.parametrize("ingest", ["auto", "spark"])
def test_runs_that_die_while_they_recover_leave_it_to_the_next(tmp_path: Path, ingest: str) -> None:
    _kill_at(tmp_path, ingest, IN_RECOVERY)


@pytest.mark.long
@pytest.mark.parametrize("ingest", ["auto", "spark"])
@pytest.mark.parametrize("number", range(4))
def test_runs_killed_at_any_instant_end_like_one_that_was_not(
    tmp_path: Path, number: int, ingest: str
) -> None:
    rng = random.Random(f"{drawing_seed()} {number}")
    file, deaths, files = write_pipeline(tmp_path, ingest), 6, 8
    for death in range(deaths):
        offered = offer(tmp_path, death * files, files)
        process = _start(file, offered)
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n", process.communicate()[1]
        # The whole process group dies, including the JVM, whatever it is doing.
        timer = threading.Timer(rng.uniform(0.3, 4.0), os.killpg, (process.pid, signal.SIGKILL))
        timer.start()
        _end(process)
        timer.cancel()
        _check_journal(tmp_path / "state")
    assert _end(_start(file, offered)) == 0
    check_results(tmp_path, deaths)
