"""kill −9 at a random instant, start again: nothing lost, nothing twice."""

import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml
from independent import committed_rows, expected_rows

from headgate.workloads.forest import SCHEMA, sensor_readings

pytestmark = [pytest.mark.spark, pytest.mark.slow]

FILES, ROWS = 24, 200
QUERIES = {
    "hot": ("H", "SELECT location, temperature, ts FROM sensors WHERE temperature > 30"),
    "dry": ("H", "SELECT location, humidity, ts FROM sensors WHERE humidity < 20"),
    "both": ("N", "SELECT * FROM sensors WHERE temperature > 20 AND humidity < 50"),
    "sum": ("N", "SELECT temperature + humidity AS total, ts FROM sensors"),
}


def _pipeline(folder: Path) -> Path:
    source = folder / "source"
    source.mkdir()
    for number in range(FILES):
        times_s = np.arange(ROWS) * 0.001 + number
        batch = sensor_readings(7, number * ROWS, times_s)
        with pq.ParquetWriter(source / f"{number:03d}.parquet", batch.schema) as writer:
            writer.write_batch(batch)
    options = {"path": str(source), "maxFilesPerTrigger": 1}
    stream = {"format": "parquet", "schema": SCHEMA, "options": options, "trigger_s": 0}
    pipeline = {
        "state": str(folder / "state"),
        "rehearsal_s": 0,
        "spark": {"master": "local[2]"},
        "classes": {"H": 6, "N": 1},
        "streams": {"sensors": stream},
        "queries": {name: {"class": each, "sql": sql} for name, (each, sql) in QUERIES.items()},
    }
    file = folder / "pipeline.yaml"
    file.write_text(yaml.safe_dump(pipeline))
    return file


def _consume(file: Path, kill_after_s: float | None) -> bool:
    """Runs the consumer; tells whether it came to its end before it was killed."""
    script = Path(__file__).with_name("consumer.py")
    command = [sys.executable, str(script), str(file), str(FILES * ROWS)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n", process.communicate()[1]
    if kill_after_s is None:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
        return True
    # The whole session dies, the JVM with it, in the midst of whatever it does.
    timer = threading.Timer(kill_after_s, os.killpg, (process.pid, signal.SIGKILL))
    timer.start()
    process.communicate()
    timer.cancel()
    return process.returncode == 0


def _killed_runs_end_like_one(folder: Path, kills: int, seed: int) -> None:
    print(f"seed={seed}")
    luck = random.Random(seed)
    file = _pipeline(folder)
    for _ in range(kills):
        _consume(file, kill_after_s=luck.uniform(0.3, 4.0))
    _consume(file, kill_after_s=None)
    for name, (_, sql) in QUERIES.items():
        committed = committed_rows(folder / "state" / "results" / name)
        assert committed == expected_rows(sql, folder / "source"), name


def test_killed_runs_end_like_one_that_was_not(tmp_path: Path) -> None:
    _killed_runs_end_like_one(tmp_path, kills=2, seed=random.randrange(10**6))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(10))
def test_many_killed_runs_end_like_one_that_was_not(tmp_path: Path, seed: int) -> None:
    _killed_runs_end_like_one(tmp_path, kills=6, seed=seed)
