"""Sources for these tests: files of sensor readings, and a Headgate over them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from kit.gates import balanced, consume, new_gate, until
from kit.streams import file_stream
from pyspark.sql import SparkSession

from headgate import Headgate, Query, Sink
from headgate.workloads.testbeds.forest import SCHEMA, sensor_readings

__all__ = ["balanced", "consume", "gate_over", "until", "write_readings"]


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
    settings = {"classes": {"H": 6, "C": 3, "N": 1}, **options}
    return new_gate(
        spark,
        folder,
        [file_stream("sensors", folder / "source", SCHEMA)],
        [
            Query(name=name, sql=sql, query_class=query_class, sink=Sink(format=sink))
            for name, (query_class, sql) in queries.items()
        ],
        **settings,
    )
