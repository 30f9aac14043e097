"""Time queries that are cut into two segments, and print the figures as JSON.

The queue between the two segments is a stream of the log. The figures are the seconds to work off a
backlog and the mean response at a steady rate. The script uses only the public API, so that
`checkouts.py` can run it with older commits.

    python bench/cut_query.py EMPTY_FOLDER
"""

import json
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
from numpy import arange

from headgate import Headgate, Query, Stream

try:
    from headgate.workloads.testbeds.forest import SCHEMA, sensor_readings
except ImportError:  # where an older commit has them
    from headgate.workloads.forest import (  # type: ignore[import-not-found, no-redef]
        SCHEMA,
        sensor_readings,
    )

FILES, ROWS, RATE_PER_S, SECONDS = 60, 5_000, 1_500, 15.0
QUERIES = {
    "hot": "SELECT sha2(location, 256) AS place, ts FROM sensors WHERE temperature > 30",
    "dry": "SELECT upper(location) AS place, ts FROM sensors"
    " WHERE humidity < 30 AND length(location) > 3 AND md5(location) > '4'",
    "mild": "SELECT soundex(location) AS place, ts FROM sensors"
    " WHERE temperature BETWEEN 15 AND 25 AND levenshtein(location, 'forest') > 2",
}


def measure(folder: Path) -> dict[str, float]:
    """Return the seconds to work off a backlog, and the mean response at a steady rate."""
    source = folder / "source"
    source.mkdir()
    for number in range(FILES):
        batch = sensor_readings(1, number * ROWS, arange(ROWS) * 0.001 + number)
        with pq.ParquetWriter(source / f"{number:04d}.parquet", batch.schema) as writer:
            writer.write_batch(batch)

    def gate_over(name: str, stream: Stream) -> Headgate:
        gate = Headgate(state=folder / name, classes={"N": 1}, master="local[2]", rehearsal_s=3)
        gate.add_stream(stream)
        for query, sql in QUERIES.items():
            gate.add_query(Query(name=query, sql=sql, query_class="N", cut=True))
        gate.start()
        return gate

    options = {"path": str(source), "maxFilesPerTrigger": "1"}
    began_s = time.perf_counter()
    gate = gate_over(
        "backlog",
        Stream(name="sensors", format="parquet", options=options, schema=SCHEMA, trigger_s=0),
    )
    began_s = time.perf_counter()
    while any(consumed < FILES * ROWS for consumed, _ in gate.totals().values()):
        gate.wait(0.01)
    backlog_s = time.perf_counter() - began_s
    gate.stop()
    steady = {"rate_per_s": str(RATE_PER_S), "seed": "1"}
    gate = gate_over("steady", Stream(name="sensors", format="headgate", options=steady))
    gate.wait(SECONDS)
    report = gate.stop()
    assert report is not None
    return {"backlog_s": backlog_s, "response_s": report.total.response_s.mean}


if __name__ == "__main__":
    print(json.dumps(measure(Path(sys.argv[1]))))
