"""Throughput when all tuples are there at the start: Headgate against one hand-written Spark job.

The job is the limit. It evaluates all queries over all files at once, with one scan and one write.
It ignores classes, order and crashes, and answers only when it has read everything.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bars import Measurement
from headgate import Headgate, Stream, policy_named
from headgate.spark.jvm.session import local_session
from headgate.workloads.testbeds.forest import SCHEMA, sensor_readings
from queries import CLASSES, STREAM, distinct
from settings import settings_of

QUERIES, FILES, ROWS, REPEATS = 50, 40, 10_000, 2


def write_source(folder: Path) -> None:
    """Write the files with all tuples, before any query starts."""
    source = folder / "source"
    source.mkdir()
    for number in range(FILES):
        batch = sensor_readings(1, number * ROWS, np.arange(ROWS) / 1e4 + number)
        pq.write_table(pa.Table.from_batches([batch]), source / f"{number:06d}.parquet")


def measurements(folder: Path) -> Iterator[Measurement]:
    write_source(folder)
    tuples = FILES * ROWS
    best = {}
    for side in ("headgate", "job"):
        times_s = []
        for repeat in range(REPEATS):
            state = folder / f"{side}-{repeat}"
            state.mkdir()
            command = [sys.executable, __file__, side, str(folder), str(state)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            times_s.append(json.loads(done.stdout.splitlines()[-1])["seconds"])
        best[side] = min(times_s)
    yield Measurement(
        what=f"tuples/s at saturation, {QUERIES} queries: Headgate / one hand-written job",
        measured=best["job"] / best["headgate"],
        unit="times",
        bar=0.8,
        figures={f"{side}_tuples_per_s": tuples / seconds for side, seconds in best.items()},
    )


def _headgate(folder: Path, state: Path) -> float:
    """Return the seconds from the start of the gate to the last committed result."""
    gate = Headgate(
        state=state / "state",
        policy=policy_named("cqc", inner="hr", period_steps=10),
        classes=CLASSES,
        master="local[2]",
        spark_config=settings_of("headgate", folder),
    )
    source = {"path": str(folder / "source")}
    gate.add_stream(Stream(name=STREAM, format="parquet", options=source, schema=SCHEMA))
    for selection in distinct(QUERIES):
        gate.add_query(selection.query())
    gate.start()
    began_s = time.perf_counter()
    while any(consumed < FILES * ROWS for consumed, _ in gate.totals().values()):
        gate.wait(0.02)
    took_s = time.perf_counter() - began_s
    gate.stop()
    return took_s


def _job(folder: Path, state: Path) -> float:
    """Return the seconds of the second of two runs; the first one compiles."""
    session = local_session(state, "local[2]", settings_of("headgate", folder))
    conditions = [query.sql.split(" WHERE ", 1)[1] for query in distinct(QUERIES)]
    matches = ", ".join(f"CASE WHEN {text} THEN {n} END" for n, text in enumerate(conditions))
    either = " OR ".join(f"({text})" for text in conditions)
    took_s = 0.0
    for run in range(2):
        began_s = time.perf_counter()
        rows = session.read.schema(SCHEMA).parquet(str(folder / "source"))
        rows.where(either).selectExpr(
            "*", f"explode(filter(array({matches}), n -> n IS NOT NULL)) AS query"
        ).write.parquet(str(state / f"out-{run}"))
        took_s = time.perf_counter() - began_s
    session.stop()
    return took_s


if __name__ == "__main__":
    side, folder, state = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    seconds = _headgate(folder, state) if side == "headgate" else _job(folder, state)
    print(json.dumps({"seconds": seconds}))
