"""What both sides are offered: the same tuples at the same rate, and what must come of them."""

import json
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from headgate.workloads.arrivals import Bursts
from headgate.workloads.forest import sensor_readings
from queries import Selection

SEED, PRIMER_SEED = 1, 0
PRIMER_TUPLES = 150
READY, BEGAN, OFFERED, SOURCE = "ready", "began", "offered", "source"
"""Names in a side's folder: two markers, the generator's own account, the directory of tuples."""

PARENT = os.getppid()

Instants = NDArray[np.int64]
"""Microseconds since 1970: what a timestamp column holds, so that equal means equal."""


@dataclass(frozen=True)
class Offered:
    """The generator's account of itself: lateness is its own, behind its schedule."""

    began_at_s: float
    ended_at_s: float
    tuples: int
    late_p95_s: float
    late_max_s: float


def generate(folder: Path, rate_per_s: float, seconds: float, tick_s: float) -> None:
    """Waits for the side to be ready, then writes a file every tick, whatever the side does.

    A file holds the tuples that are scheduled in its tick, under the times they are scheduled at;
    a file that comes late does not shift the others.
    """
    arrivals = Bursts(rate_per_s=rate_per_s)
    wait_until((folder / READY).exists)
    began_at_s = time.time() + 0.1
    put_text(folder / BEGAN, json.dumps(began_at_s))
    first, late_s = 0, []
    for tick in range(1, round(seconds / tick_s) + 1):
        due_at_s = began_at_s + tick * tick_s
        end = arrivals.count_by(tick * tick_s)
        tuples = sensor_readings(SEED, first, began_at_s + arrivals.times_s(first, end))
        _wait_for(due_at_s)
        _put_tuples(folder / SOURCE, f"{tick:06d}", tuples)
        late_s.append(time.time() - due_at_s)
        first = end
    account = Offered(began_at_s, time.time(), first, float(np.quantile(late_s, 0.95)), max(late_s))
    put_text(folder / OFFERED, json.dumps(asdict(account)))


def _wait_for(instant_s: float) -> None:
    wait_until(lambda: time.time() >= instant_s, poll_s=0.005)


def wait_until(true: Callable[[], bool], poll_s: float = 0.05) -> None:
    """Waits; ends this process, whichever it is, when the one that started it is gone."""
    while not true():
        if os.getppid() != PARENT:
            raise SystemExit("the comparison is gone")
        time.sleep(poll_s)


def put_primer(source: Path, number: int) -> None:
    """Writes a file of tuples before the beginning; they count for nobody."""
    times_s = time.time() - np.arange(PRIMER_TUPLES, 0, -1) / PRIMER_TUPLES
    tuples = sensor_readings(PRIMER_SEED, number * PRIMER_TUPLES, times_s)
    _put_tuples(source, f"primer-{number:06d}", tuples)


def put_text(file: Path, text: str) -> None:
    """Writes a small file that is there whole or not at all."""
    temporary = file.with_name(f".{file.name}")
    temporary.write_text(text)
    temporary.rename(file)


def expected(
    source: Path, queries: Iterable[Selection], window_us: tuple[int, int]
) -> dict[str, Instants]:
    """Gives DuckDB's answer to every query over the tuples of a window: its rows' times, sorted."""
    database = duckdb.connect()
    database.execute("SET TimeZone = 'UTC'")
    database.execute(
        "CREATE TABLE sensors AS SELECT *, epoch_us(ts) AS at_us"
        " FROM read_parquet($files) WHERE epoch_us(ts) >= $begin AND epoch_us(ts) < $end",
        {"files": str(source / "*.parquet"), "begin": window_us[0], "end": window_us[1]},
    )
    answers = {}
    for each in queries:
        text = f"SELECT at_us FROM sensors WHERE {each.condition} ORDER BY at_us"
        answers[each.name] = database.execute(text).fetchnumpy()["at_us"].astype(np.int64)
    database.close()
    return answers


def _put_tuples(source: Path, name: str, tuples: pa.RecordBatch) -> None:
    temporary = source / f".{name}"
    pq.write_table(pa.Table.from_batches([tuples]), temporary)
    os.rename(temporary, source / f"{name}.parquet")
