"""Sources that the driver polls: no Structured Streaming trigger between tuple and log."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from headgate.model.stream import Rows, Stream
from headgate.spark.clock import Clock
from headgate.spark.jvm.time_zone import zone_of
from headgate.spark.jvm.types import ZONE, arrow_schema
from headgate.spark.log.dead_letters import Letter
from headgate.spark.sources.directory import directory_source
from headgate.spark.sources.protocol import MOST_TUPLES, Polled, Source
from headgate.spark.sources.row_reader import RowReader
from headgate.spark.sources.wall_clock import has_instants, tzinfo_of, with_zone
from headgate.workloads.forest import arrivals_of, sensor_readings


def polled_source(
    session: SparkSession, stream: Stream, schema: StructType, rows: Rows | None = None
) -> Source | None:
    """Return the source that the driver polls, or None if Structured Streaming must read."""
    if rows is not None:
        return RowSource(stream, schema, rows, zone_of(session))
    if stream.format == "headgate":
        return GeneratorSource(dict(stream.options))
    return directory_source(session, stream, schema)


class GeneratorSource(Source):
    """Readings of a forest, see `workloads.forest`; a restart goes on as if no time had passed."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._seed = int(options.get("seed", "0"))
        self._last = int(options.get("tuples", str(2**60)))
        self._arrivals = arrivals_of(dict(options))
        self._next, self._start_s = 0, -1.0
        self._now_s = Clock().now_s

    def resume(self, position: Mapping[str, str]) -> None:
        self._next = int(position.get("tuple", "0"))

    def poll(self) -> Polled | None:
        now_s = self._now_s()
        if self._start_s < 0:
            passed_s = float(self._arrivals.times_s(self._next, self._next + 1)[0])
            self._start_s = now_s - passed_s
        end = min(self._arrivals.count_by(now_s - self._start_s), self._last)
        end = min(end, self._next + MOST_TUPLES)
        if end <= self._next:
            return None
        times_s = self._arrivals.times_s(self._next, end) + self._start_s
        batch = sensor_readings(self._seed, self._next, times_s)
        return Polled(pa.Table.from_batches([batch]), {"tuple": str(end)})

    def taken(self, polled: Polled) -> None:
        self._next = int(polled.position["tuple"])


class RowSource(Source):
    """Tuples of a Python iterator; `rows(n)` begins with the n-th, so that a restart can go on.

    A value that does not fit its column makes the tuple a dead letter.

    Args:
        zone: the session's time zone; a TIMESTAMP without a zone is in it.
    """

    def __init__(self, stream: Stream, schema: StructType, rows: Rows, zone: str = ZONE) -> None:
        self._stream, self._rows = stream, rows
        self._schema = arrow_schema(schema)
        # Arrow reads a time without a zone as UTC.
        self._zone = zone
        instants = [field for field in self._schema if has_instants(field.type)]
        self._without_zone = [] if zone == ZONE else instants
        self._next = 0
        self._reader: RowReader | None = None
        self._last: Polled | None = None

    def resume(self, position: Mapping[str, str]) -> None:
        self._next = int(position.get("row", "0"))

    def poll(self) -> Polled | None:
        if self._last is not None:
            return self._last
        if self._reader is None:
            self._reader = RowReader(partial(self._rows, self._next), self._batch)
        try:
            rows = self._reader.take()
        except BaseException:
            self._reader = None  # the next poll opens another, for the rows that follow
            raise
        if not rows:
            return None
        letters: tuple[Letter, ...] = ()
        try:
            table = self._table(rows)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            table, letters = self._one_by_one(rows)
        self._last = Polled(table, {"row": str(self._next + len(rows))}, letters)
        return self._last

    def taken(self, polled: Polled) -> None:
        self._next = int(polled.position["row"])
        self._last = None

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()

    def _table(self, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
        values = [dict(row) for row in rows]
        for field in self._without_zone:
            for row in values:
                if field.name in row:
                    row[field.name] = with_zone(row[field.name], field.type, tzinfo_of(self._zone))
        return pa.Table.from_pylist(values, schema=self._schema)

    @property
    def _batch(self) -> int:
        return int(self._stream.options.get("rowsPerPoll", "1000"))

    def _one_by_one(self, rows: list[Mapping[str, Any]]) -> tuple[pa.Table, tuple[Letter, ...]]:
        tables, letters = [], []
        for number, row in enumerate(rows, self._next):
            try:
                tables.append(self._table([row]))
            except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
                letters.append(Letter(f"row {number}", repr(row), str(error)))
        table = pa.concat_tables(tables) if tables else self._schema.empty_table()
        return table, tuple(letters)
