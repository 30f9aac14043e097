"""Time queries that join the same two streams and differ in WHERE and outputs.

Print the seconds of a run as JSON, for 1 and for 20 queries. The script uses only the public API,
so that `checkouts.py` can run it with older commits.

    python bench/shared_joins.py
"""

import json
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from headgate import Headgate, Query, Sink, Stream

FILES, ROWS, EVERY_US = 80, 150, 10_000
SCHEMA = "k INT, x INT, ts TIMESTAMP"
START_US = 1_700_000_000_000_000
COUNTS = (1, 20)


def write_files(folder: Path) -> None:
    """Write the tuples of one stream in small files."""
    folder.mkdir(parents=True)
    for file in range(FILES):
        number = np.arange(file * ROWS, (file + 1) * ROWS)
        table = pa.table(
            {
                "k": (number % 50).astype(np.int32),
                "x": (number * 7 % 100).astype(np.int32),
                "ts": pa.array(START_US + number * EVERY_US).cast(pa.timestamp("us", "UTC")),
            }
        )
        pq.write_table(table, folder / f"{file:04d}.parquet")


def text(number: int) -> str:
    return (
        f"SELECT a.k, a.x + {number} AS u, b.x AS v, greatest(a.ts, b.ts) AS ts"
        " FROM a [RANGE 1 SECONDS] JOIN b [RANGE 1 SECONDS] ON a.k = b.k"
        f" WHERE a.x > {number} AND b.x < {99 - number}"
    )


def run_s(queries: int, folder: Path) -> float:
    """Return the seconds from the start to the last result."""
    gate = Headgate(
        state=folder / "state", policy="rr", classes={"H": 1}, rehearsal_s=0,
        train_tuples=ROWS, master="local[2]",
    )  # fmt: skip
    for name in "ab":
        write_files(folder / name)
        options = {"path": str(folder / name), "maxFilesPerTrigger": "1"}
        stream = Stream(
            name=name, format="parquet", schema=SCHEMA, event_time="ts", options=options
        )
        gate.add_stream(stream)
    for number in range(queries):
        sink = Sink(format="parquet", path=str(folder / f"q{number}"))
        gate.add_query(Query(name=f"q{number}", sql=text(number), query_class="H", sink=sink))
    gate.start()
    began_s = time.perf_counter()
    while any(consumed < 2 * FILES * ROWS for consumed, _ in gate.totals().values()):
        gate.wait(0.02)
    taken_s = time.perf_counter() - began_s
    gate.stop()
    return taken_s


def main() -> None:
    seconds = {}
    for queries in COUNTS:
        with tempfile.TemporaryDirectory() as folder:
            seconds[f"{queries} joins of the same streams"] = run_s(queries, Path(folder))
    print(json.dumps(seconds))


if __name__ == "__main__":
    main()
