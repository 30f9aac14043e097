"""Sources for these tests: files of sensor readings, and a Headgate over them."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from crash import CrashingHeadgate
from kit.streams import file_stream
from pyspark.sql import SparkSession

from headgate import Headgate, Query, Sink
from headgate.workloads.testbeds.forest import SCHEMA, sensor_readings


def write_readings(
    folder: Path,
    files: int,
    rows: int,
    seed: int = 1,
    first_file: int = 0,
    late_s: float = 0.0,
) -> int:
    """Write files of readings; return how many readings.

    Args:
        late_s: how late a tenth of the readings are; another tenth are late by a fifth of it.
    """
    folder.mkdir(exist_ok=True)
    for number in range(first_file, first_file + files):
        shares = np.random.default_rng((seed, number)).choice([0, 0.2, 1], rows, p=[0.8, 0.1, 0.1])
        times_s = np.arange(rows) * 0.001 + number - late_s * shares
        batch = sensor_readings(seed, number * rows, times_s)
        with pq.ParquetWriter(folder / f"{number:04d}.parquet", batch.schema) as writer:
            writer.write_batch(batch)
    return files * rows


def gate_over(
    spark: SparkSession,
    folder: Path,
    queries: Mapping[str, tuple[str, str]],
    *,
    sink: str = "parquet",
    **options: Any,
) -> Headgate:
    """Return a Headgate over the files of `folder/source`.

    Args:
        queries: the class and the SQL of each query, by its name.
    """
    settings = {"state": folder / "state", "classes": {"H": 6, "C": 3, "N": 1}, "rehearsal_s": 0}
    gate = CrashingHeadgate(spark, **{**settings, **options})
    gate.add_stream(file_stream("sensors", folder / "source", SCHEMA))
    for name, (query_class, sql) in queries.items():
        gate.add_query(Query(name=name, sql=sql, query_class=query_class, sink=Sink(format=sink)))
    return gate


def consume(gate: Headgate, offered: int, but: tuple[str, ...] = ()) -> None:
    """Wait until every query, except those in `but`, has consumed the tuples offered."""
    for _ in range(1200):
        totals = gate.totals()
        if all(totals[name][0] >= offered for name in totals if name not in but):
            return
        gate.wait(0.05)
    raise AssertionError(f"after a minute: {gate.totals()} of {offered}, {gate.report().errors}")


def until(done: Callable[[], bool], gate: Headgate, deadline_s: float = 90.0) -> None:
    """Wait until a condition is true; fail if that takes longer than `deadline_s`."""
    ends_at_s = time.monotonic() + deadline_s
    while not done():
        assert time.monotonic() < ends_at_s, gate.report().errors
        gate.wait(0.05)


def balanced(gate: Headgate) -> None:
    """Check that the account of every query adds up to the tuples that arrived."""
    for name, account in gate.accounts().items():
        parts = account.delivered + account.filtered + account.queued + account.shed
        parts += account.missed + account.late
        assert account.arrived == parts + account.dead_lettered, (name, account)
