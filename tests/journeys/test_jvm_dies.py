"""The JVM is killed alone, as by the kernel when memory runs out."""

import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
import yaml
from kit.waiting import until
from pyspark.sql import SparkSession
from sources import balanced, consume

from headgate import Headgate
from headgate.config import read_pipeline

pytestmark = [pytest.mark.spark, pytest.mark.slow]

LINES = 50


def write(folder: Path, first: int, files: int) -> None:
    folder.mkdir(exist_ok=True)
    for file in range(first, first + files):
        numbers = range(file * LINES, (file + 1) * LINES)
        text = "".join(f'{{"i": {number}}}\n' for number in numbers)
        (folder / f".{file:04d}").write_text(text)
        (folder / f".{file:04d}").rename(folder / f"{file:04d}.json")


def jvm_of(process: subprocess.Popen[str]) -> int:
    """Return the number of the Java process that a process has started."""
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = file.read_text().partition("(")[2].rpartition(")")
        except OSError:
            continue  # it has ended
        if name == "java" and int(rest.split()[1]) == process.pid:
            return int(file.parent.name)
    raise AssertionError("no JVM")


def ended(process: subprocess.Popen[str], timeout_s: float) -> bool:
    try:
        process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        return False
    return True


def test_the_run_ends_with_a_sentence_and_the_next_one_resumes(
    spark: SparkSession, tmp_path: Path
) -> None:
    streams = {
        name: {
            "format": "json", "schema": "i INT", "trigger_s": 0.01, "ingest": ingest,
            "options": {"path": str(tmp_path / name), "maxFilesPerTrigger": 1},
        }
        for name, ingest in {"driver": "driver", "spark": "spark"}.items()
    }  # fmt: skip
    queries = {f"q_{name}": {"class": "H", "sql": f"SELECT i FROM {name}"} for name in streams}
    pipeline = {
        "state": str(tmp_path / "state"), "rehearsal_s": 0, "spark": {"master": "local[2]"},
        "classes": {"H": 1}, "streams": streams,
        "queries": queries,
    }  # fmt: skip
    file = tmp_path / "pipeline.yaml"
    file.write_text(yaml.safe_dump(pipeline))
    for name in streams:
        write(tmp_path / name, 0, 3)
    command = [sys.executable, "-m", "headgate.cli", "run", str(file)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    results = tmp_path / "state" / "results"
    try:
        until(
            lambda: all(any((results / f"q_{n}").glob("*.parquet")) for n in streams),
            partial(ended, process),
            timeout_s=300,
        )
        for name in streams:
            write(tmp_path / name, 3, 40)
    finally:
        os.kill(jvm_of(process), signal.SIGKILL)
    killed_at_s = time.monotonic()
    out, errors = process.communicate(timeout=60)
    assert time.monotonic() - killed_at_s < 10
    assert process.returncode == 1, errors
    assert errors.splitlines()[-1].startswith("the JVM of Spark is gone"), errors
    assert "Traceback" not in errors + out
    assert not (tmp_path / "state" / "dead-letters").exists()

    again = read_pipeline(str(file))
    gate = Headgate(spark, state=again.state, classes={"H": 1}, rehearsal_s=0)
    for stream in again.stream_models():
        gate.add_stream(stream)
    for query in again.query_models():
        gate.add_query(query)
    gate.start()
    consume(gate, 43 * LINES)
    gate.stop()
    balanced(gate)
    for name in streams:
        rows = spark.read.parquet(str(results / f"q_{name}")).collect()
        assert sorted(row.i for row in rows) == list(range(43 * LINES))


BEFORE_THE_RUN = """
import os, signal, sys, threading, time
from pyspark import SparkContext
from headgate.cli.app import main

def kill_once(exists):
    while exists() is None:
        time.sleep(0.002)
    os.kill(SparkContext._gateway.proc.pid, signal.SIGKILL)

for command, exists in (
    (["run", sys.argv[1], "--no-control"], lambda: SparkContext._gateway),
    (["check", sys.argv[1]], lambda: SparkContext._active_spark_context),
):
    threading.Thread(target=kill_once, args=(exists,), daemon=True).start()
    try:
        main(command)
    except SystemExit as end:
        print(end.code)
"""


def test_before_the_run_it_is_a_sentence_too(tmp_path: Path) -> None:
    """The JVM dies while Spark starts; then, in the same process, while it analyzes the file."""
    pipeline = {
        "state": str(tmp_path / "state"), "classes": {"H": 1},
        "streams": {"s": {"format": "rate"}},
        "queries": {f"q{n}": {"class": "H", "sql": "SELECT * FROM s"} for n in range(50)},
    }  # fmt: skip
    file = tmp_path / "pipeline.yaml"
    file.write_text(yaml.safe_dump(pipeline))
    command = [sys.executable, "-c", BEFORE_THE_RUN, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert done.stdout == "1\n1\n", done.stderr
    lines = [line for line in done.stderr.splitlines() if "starting Spark" not in line]
    assert len(lines) == 2, done.stderr
    assert all(line.startswith("the JVM of Spark is gone") for line in lines)
