"""Measures a query that is cut: this checkout and another, in turn.

The queue between the two segments is a stream of the log. Prints, for both checkouts, the seconds
to work off a backlog and the mean response at a steady rate, and the median ratio of the pairs with
its range; a ratio below 1 says that this checkout is quicker.

    python bench/cut_query.py --other ../before --pairs 5
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser
from pathlib import Path
from statistics import median

HERE = Path(__file__).resolve().parents[1]
FILES, ROWS, RATE_PER_S, SECONDS = 60, 5_000, 1_500, 15.0
QUERIES = {
    "hot": "SELECT sha2(location, 256) AS place, ts FROM sensors WHERE temperature > 30",
    "dry": "SELECT upper(location) AS place, ts FROM sensors"
    " WHERE humidity < 30 AND length(location) > 3 AND md5(location) > '4'",
    "mild": "SELECT soundex(location) AS place, ts FROM sensors"
    " WHERE temperature BETWEEN 15 AND 25 AND levenshtein(location, 'forest') > 2",
}


def measure(folder: Path) -> dict[str, float]:
    """Return the seconds of a backlog and the mean response at a steady rate."""
    import pyarrow.parquet as pq  # noqa: PLC0415  # of the checkout under test
    from numpy import arange  # noqa: PLC0415

    from headgate import Headgate, Query, Stream  # noqa: PLC0415
    from headgate.workloads.forest import SCHEMA, sensor_readings  # noqa: PLC0415

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


def run(checkout: Path) -> dict[str, float]:
    """Measure a checkout in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, str(Path(__file__).resolve()), "--measure", folder],
            env={**os.environ, "PYTHONPATH": str(checkout)}, cwd=folder, capture_output=True,
            text=True, check=False,
        )  # fmt: skip
    if done.returncode:
        sys.exit(done.stderr)
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def main() -> None:
    parser = ArgumentParser(description="Compares a cut query in two checkouts.")
    parser.add_argument("--other", type=Path, help="the other checkout")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--measure", type=Path, help="measure the checkout on PYTHONPATH, in DIR")
    asked = parser.parse_args()
    if asked.measure is not None:
        print(json.dumps(measure(asked.measure)))
        return
    if asked.other is None:
        parser.error("--other: the checkout to compare with")
    pairs = []
    for number in range(asked.pairs):
        order = [("this", HERE), ("other", asked.other.resolve())]
        found = {name: run(checkout) for name, checkout in order[:: 1 if number % 2 else -1]}
        pairs.append(found)
        print(json.dumps(found), flush=True)
    for key in ("backlog_s", "response_s"):
        ratios = [pair["this"][key] / pair["other"][key] for pair in pairs]
        spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
        print(f"{key}: this / other {median(ratios):.2f} ({spread})")


if __name__ == "__main__":
    main()
