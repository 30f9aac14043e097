"""The input of both sides: the same tuples at the same rate, and the answers that are expected."""

import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from headgate.workloads.arrivals import Bursts
from headgate.workloads.testbeds.forest import sensor_readings
from queries import Selection, streams_of

SEED, PRIMER_SEED = 1, 0
PRIMER_TUPLES = 150
READY, BEGAN, OFFERED, SOURCE = "ready", "began", "offered", "source"
"""Names in a side's folder: two markers, the generator's report, the folder of tuples."""

PARENT = os.getppid()

Instants = NDArray[np.int64]
"""Microseconds since 1970: what a timestamp column holds, so that equal means equal."""


@dataclass(frozen=True)
class Offered:
    """The generator's report. Lateness is how far the generator was behind its own schedule."""

    began_at_s: float
    ended_at_s: float
    tuples: int
    late_p95_s: float
    late_max_s: float


def generate(
    folder: Path, rate_per_s: float, seconds: float, tick_s: float, streams: Sequence[str]
) -> None:
    """Wait until the side is ready, then write files at every tick, whatever the side does.

    A file holds the tuples that are scheduled in its tick, with their scheduled times. A file that
    comes late does not shift the others. Streams share the rate evenly.
    """
    arrivals = Bursts(rate_per_s=rate_per_s / len(streams))
    wait_until((folder / READY).exists)
    began_at_s = time.time() + 0.1
    put_text(folder / BEGAN, json.dumps(began_at_s))
    first, late_s = 0, []
    for tick in range(1, round(seconds / tick_s) + 1):
        due_at_s = began_at_s + tick * tick_s
        end = arrivals.count_by(tick * tick_s)
        times_s = began_at_s + arrivals.times_s(first, end)
        files = [
            (source_of(folder, name, streams), sensor_readings(SEED + number, first, times_s))
            for number, name in enumerate(streams)
        ]
        _wait_for(due_at_s)
        for source, tuples in files:
            _put_tuples(source, f"{tick:06d}", tuples)
        late_s.append(time.time() - due_at_s)
        first = end
    count = first * len(streams)
    account = Offered(began_at_s, time.time(), count, float(np.quantile(late_s, 0.95)), max(late_s))
    put_text(folder / OFFERED, json.dumps(asdict(account)))


def source_of(folder: Path, stream: str, streams: Sequence[str]) -> Path:
    """Return the folder of a stream's tuples. With several streams, each has its own folder."""
    return folder / SOURCE / stream if len(streams) > 1 else folder / SOURCE


def _wait_for(instant_s: float) -> None:
    wait_until(lambda: time.time() >= instant_s, poll_s=0.005)


def wait_until(condition: Callable[[], bool], poll_s: float = 0.05) -> None:
    """Wait for a condition. End this process if the process that started it is gone."""
    while not condition():
        if os.getppid() != PARENT:
            raise SystemExit("the comparison is gone")
        time.sleep(poll_s)


def put_primer(source: Path, number: int) -> None:
    """Write a file of tuples before the measurement; these tuples are not counted."""
    times_s = time.time() - np.arange(PRIMER_TUPLES, 0, -1) / PRIMER_TUPLES
    tuples = sensor_readings(PRIMER_SEED, number * PRIMER_TUPLES, times_s)
    _put_tuples(source, f"primer-{number:06d}", tuples)


def put_text(file: Path, text: str) -> None:
    """Write a small file that appears whole or not at all."""
    temporary = file.with_name(f".{file.name}")
    temporary.write_text(text)
    temporary.rename(file)


def expected(
    folder: Path, queries: Sequence[Selection], window_us: tuple[int, int]
) -> dict[str, Instants]:
    """Return DuckDB's answer to every query: the times of its rows in a window, sorted."""
    database = duckdb.connect()
    database.execute("SET TimeZone = 'UTC'")
    streams = streams_of(queries)
    for name in streams:
        files = str(source_of(folder, name, streams) / "*.parquet")
        database.execute(
            f"CREATE TABLE {name} AS SELECT *, epoch_us(ts) AS at_us FROM read_parquet($files)",
            {"files": files},
        )
    answers = {}
    for query in queries:
        text = (
            f"SELECT at_us FROM ({query.times}) WHERE at_us >= {window_us[0]}"
            f" AND at_us < {window_us[1]} ORDER BY at_us"
        )
        answers[query.name] = database.execute(text).fetchnumpy()["at_us"].astype(np.int64)
    database.close()
    return answers


def _put_tuples(source: Path, name: str, tuples: pa.RecordBatch) -> None:
    temporary = source / f".{name}"
    pq.write_table(pa.Table.from_batches([tuples]), temporary)
    os.rename(temporary, source / f"{name}.parquet")
