"""100 sliding aggregates over one stream, with shared panes and compiled code, and without."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bars import Measurement
from headgate import Headgate, Query, Stream
from headgate.workloads.testbeds.forest import SCHEMA, sensor_readings
from machine import cpu_clock
from settings import settings_of

QUERIES, ROWS, SECONDS_A_FILE = 100, 2_000, 1.0
FILES = 180
"""Enough files that what the JVM compiles at first is a small part of either run."""


def measurements(folder: Path) -> Iterator[Measurement]:
    """Yield the CPU time without sharing over the CPU time with sharing."""
    source = folder / "source"
    source.mkdir()
    for number in range(FILES):
        times_s = np.arange(ROWS) * SECONDS_A_FILE / ROWS + number * SECONDS_A_FILE
        batch = sensor_readings(1, number * ROWS, times_s)
        pq.write_table(pa.Table.from_batches([batch]), source / f"{number:06d}.parquet")
    runs = {}
    for shares in (True, False):
        state = folder / f"shares-{shares}"
        command = [sys.executable, __file__, str(folder), str(state), str(int(shares))]
        done = subprocess.run(
            command, capture_output=True, text=True, check=True, start_new_session=True
        )
        runs[shares] = json.loads(done.stdout.splitlines()[-1])
    if runs[True]["rows"] != runs[False]["rows"]:
        raise LookupError(f"other results without sharing: {runs}")
    yield Measurement(
        what=f"{QUERIES} sliding aggregates: CPU seconds, nothing shared / panes and code shared",
        measured=runs[False]["cpu_s"] / runs[True]["cpu_s"],
        unit="times",
        bar=5.0,
        figures={"shared": runs[True], "own": runs[False]},
    )


def _run(folder: Path, state: Path, shares: bool) -> dict[str, float]:
    gate = Headgate(
        state=state,
        classes={"N": 1.0},
        master="local[2]",
        spark_config=settings_of("headgate", folder),
        rehearsal_s=0,
        share="class" if shares else "none",
    )
    gate.add_stream(
        Stream(
            name="sensors", format="parquet", schema=SCHEMA, event_time="ts", quiet_s=None,
            options={"path": str(folder / "source"), "maxFilesPerTrigger": "1"}, trigger_s=0.2,
        )
    )  # fmt: skip
    columns = "location, count(*) AS n, avg(temperature) AS mean, max(humidity) AS wet"
    for number in range(QUERIES):
        slide = 1 + number % 10
        window = f"[RANGE {slide + 1 + number // 5} SECONDS SLIDE {slide} SECONDS]"
        sql = f"SELECT {columns} FROM sensors {window} WHERE humidity > 10 GROUP BY location"
        gate.add_query(Query(name=f"q{number}", sql=sql, query_class="N"))
    gate.start()
    before = cpu_clock(os.getpid(), time.time())
    while any(consumed < FILES * ROWS for consumed, _ in gate.totals().values()):
        gate.wait(0.1)
    after = cpu_clock(os.getpid(), time.time())
    rows = sum(results for _, results in gate.totals().values())
    gate.stop()
    return {"cpu_s": after.group_s - before.group_s, "rows": rows}


if __name__ == "__main__":
    print(json.dumps(_run(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3] == "1")))
