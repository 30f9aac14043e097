"""kill −9 at points and at random instants, start again: nothing lost, nothing twice."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import yaml
from independent import committed_rows, expected_rows
from sources import write_readings

from headgate.spark.journal import Journal
from headgate.workloads.forest import SCHEMA

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROWS = 200
QUERIES = {
    "hot": ("H", "SELECT location, temperature, ts FROM sensors WHERE temperature > 30"),
    "dry": ("H", "SELECT location, humidity, ts FROM sensors WHERE humidity < 20"),
    "both": ("N", "SELECT * FROM sensors WHERE temperature > 20 AND humidity < 50"),
    "sum": ("N", "SELECT temperature + humidity AS total, ts FROM sensors"),
    "cut": ("N", "SELECT upper(location) AS place, ts FROM sensors WHERE temperature > 25"),
}
WINDOWS = {
    "before the journal has the train": ["train written", "train named"],
    "before the sink is written": ["train journalled"],
    "between sink and journal": ["result written", "results written"],
    "after the journal": ["step journalled", "result visible"],
}
"""Every point that the engine tells of while all records can be read, by what a crash there must
not break; `test_dead_letters.py` has the others."""


def _pipeline(folder: Path, ingest: str) -> Path:
    options = {"path": str(folder / "source"), "maxFilesPerTrigger": 1}
    stream = {
        "format": "parquet", "schema": SCHEMA, "options": options, "trigger_s": 0, "ingest": ingest,
    }  # fmt: skip
    pipeline = {
        "state": str(folder / "state"),
        "rehearsal_s": 0,
        "train_tuples": ROWS,
        "spark": {"master": "local[2]"},
        "classes": {"H": 6, "N": 1},
        "streams": {"sensors": stream},
        "queries": {
            name: {"class": each, "sql": sql, "cut": name == "cut"}
            for name, (each, sql) in QUERIES.items()
        },
    }
    file = folder / "pipeline.yaml"
    file.write_text(yaml.safe_dump(pipeline))
    return file


def _start(file: Path, offered: int, *more: object) -> subprocess.Popen[str]:
    script = Path(__file__).with_name("consumer.py")
    command = [sys.executable, str(script), str(file), str(offered), *map(str, more)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def _end(process: subprocess.Popen[str]) -> int:
    """Waits for the end, and holds every account that was told against its law."""
    out, errors = process.communicate(timeout=300)
    assert process.returncode in (0, -signal.SIGKILL), errors
    for line in out.splitlines():
        if line.startswith("{"):
            _check_accounts(json.loads(line))
    return process.returncode


def _check_accounts(accounts: dict[str, dict[str, int]]) -> None:
    assert set(accounts) == set(QUERIES)
    for name, each in accounts.items():
        parts = ("delivered", "filtered", "queued", "shed", "missed", "late", "dead_lettered")
        assert each["arrived"] == sum(each[part] for part in parts), (name, each)


def _check_journal(state: Path) -> None:
    """What a crash has left in the journal adds up as it lies there."""
    journal = Journal(state)
    accounts = {name: vars(each) for name, each in journal.accounts().items()}
    journal.close()
    if accounts:
        _check_accounts(accounts)


def _check_results(folder: Path) -> None:
    for name, (_, sql) in QUERIES.items():
        committed = committed_rows(folder / "state" / "results" / name)
        assert committed == expected_rows(sql, folder / "source"), name


def _kill_at(folder: Path, ingest: str, points: list[tuple[str, int]]) -> None:
    """Lets every run but the last die at a point, when it comes there for the n-th time."""
    offered, files = 0, 4
    for number, (point, times) in enumerate(points):
        # As many files as no point needs, so that the run certainly comes there.
        offered += write_readings(folder / "source", files, ROWS, 7, first_file=number * files)
        killed = _end(_start(_pipeline(folder, ingest), offered, point, times))
        assert killed == -signal.SIGKILL, f"never came to '{point}' for the {times}th time"
        _check_journal(folder / "state")
    assert _end(_start(_pipeline(folder, ingest), offered)) == 0
    _check_results(folder)


def test_runs_that_die_at_points_end_like_one_that_did_not(tmp_path: Path) -> None:
    seed = random.randrange(10**6)
    print(f"seed={seed}")
    luck = random.Random(seed)
    window = luck.choice(list(WINDOWS))
    points = [(luck.choice(WINDOWS[window]), luck.randint(1, 3))]
    print(points)
    _kill_at(tmp_path, luck.choice(["auto", "spark"]), points)


@pytest.mark.long
@pytest.mark.parametrize("ingest", ["auto", "spark"])
@pytest.mark.parametrize("window", WINDOWS)
def test_twenty_deaths_in_every_window(tmp_path: Path, window: str, ingest: str) -> None:
    seed = random.randrange(10**6)
    print(f"seed={seed}")
    luck = random.Random(seed)
    points = [(luck.choice(WINDOWS[window]), luck.randint(1, 3)) for _ in range(20)]
    print(points)
    _kill_at(tmp_path, ingest, points)


@pytest.mark.long
@pytest.mark.parametrize("ingest", ["auto", "spark"])
@pytest.mark.parametrize("seed", range(4))
def test_runs_killed_at_any_instant_end_like_one_that_was_not(
    tmp_path: Path, seed: int, ingest: str
) -> None:
    luck = random.Random(seed)
    offered = write_readings(tmp_path / "source", files=24, rows=ROWS, seed=7)
    file = _pipeline(tmp_path, ingest)
    for _ in range(6):
        process = _start(file, offered)
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n", process.communicate()[1]
        # The whole session dies, the JVM with it, in the midst of whatever it does.
        timer = threading.Timer(luck.uniform(0.3, 4.0), os.killpg, (process.pid, signal.SIGKILL))
        timer.start()
        _end(process)
        timer.cancel()
        _check_journal(tmp_path / "state")
    assert _end(_start(file, offered)) == 0
    _check_results(tmp_path)
