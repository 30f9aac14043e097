"""Streams for joins, and Spark's batch answers over the rows that are not late."""

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from kit.batch import batch_session
from kit.gates import consume_streams, new_gate, of_two_classes
from kit.streams import file_stream
from pyspark.sql import SparkSession
from two_streams import LATENESS_S, SCHEMA, Row, in_time, write

from headgate import Headgate
from headgate.spark.jvm.session import activate

STREAMS = ("lefts", "rights", "others")
BASE = datetime(2024, 3, 31, 0, 59, 50, tzinfo=UTC)  # ten seconds before Europe's clocks go forward
_SPARK_NAMES = {"k": pa.string(), "v": pa.int32(), "ts": pa.timestamp("us", tz="UTC")}


def rows_on_edges(seed: int, count: int) -> list[Row]:
    """Return rows whose times are multiples of half a second, or off by one microsecond.

    Some rows are late.
    """
    random = np.random.default_rng(seed)
    now, rows = 0, []
    for number in range(count):
        now += int(random.choice([0, 500_000, 500_000, 1_000_000]))
        delay_us = int(random.choice([0, 0, 0, 1_500_000, 3_000_000, 12_000_000]))
        time_us = now - delay_us + int(random.choice([0, 0, 1, -1]))
        place = None if random.random() < 0.05 else "ab"[random.integers(2)]
        rows.append((place, number, BASE + timedelta(microseconds=time_us)))
    return rows


def closed(rows: list[Row], number: int) -> list[Row]:
    """Return the rows and one more, a day later, that moves the watermark past all of them.

    The last row joins with no other.
    """
    return [*rows, (None, -1, BASE + timedelta(days=1 + number))]


def gate_of_three(
    spark: SparkSession,
    folder: Path,
    rows: Mapping[str, list[Row]],
    texts: Mapping[str, str],
    files: int,
    **more: Any,
) -> Headgate:
    """Return a Headgate over the rows of each stream, written to files, and rows that close them.

    Args:
        files: how many files the first stream has; each further stream has one more.
    """
    streams = []
    for number, (name, stream_rows) in enumerate(rows.items()):
        write(folder / name, closed(stream_rows, number), files + number)
        streams.append(file_stream(name, folder / name, SCHEMA, lateness_s=LATENESS_S))
    settings = {"classes": {"H": 6, "N": 1}, **more}
    return new_gate(spark, folder, streams, of_two_classes(texts), **settings)


def consume_closed(gate: Headgate, texts: Mapping[str, str], rows: Mapping[str, list[Row]]) -> None:
    """Wait until every query has consumed all rows of its streams, and the ones that close them."""
    consume_streams(gate, texts, {name: len(rows[name]) + 1 for name in rows})


class Batch:
    """Spark's batch answers, over all rows or over those that are not late."""

    def __init__(
        self, spark: SparkSession, rows: Mapping[str, list[Row]], *, late: bool = False
    ) -> None:
        self._spark = spark
        with batch_session(spark) as self._session:
            for name, stream_rows in rows.items():
                columns = zip(*(stream_rows if late else in_time(stream_rows)[0]), strict=True)
                table = pa.table(
                    [pa.array(c, t) for c, t in zip(columns, _SPARK_NAMES.values(), strict=True)],
                    list(_SPARK_NAMES),
                )
                self._session.createDataFrame(table).createOrReplaceTempView(name)

    def __call__(self, sql: str) -> Counter[tuple[Any, ...]]:
        try:
            table = self._session.sql(sql).toArrow()
        finally:
            activate(self._spark)
        rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
        return Counter(
            tuple(v.timestamp() if isinstance(v, datetime) else v for v in row) for row in rows
        )
