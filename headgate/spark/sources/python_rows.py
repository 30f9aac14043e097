"""Rows of a Python iterator."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from headgate.extensions import Letter, Polled, Source, SourceContext
from headgate.spark.jvm.types import ZONE
from headgate.spark.sources.row_reader import RowReader
from headgate.spark.sources.wall_clock import has_instants, tzinfo_of, with_zone


class RowSource(Source):
    """Tuples of a Python iterator; `rows(n)` begins with the n-th, so that a restart can go on.

    A value that does not fit its column makes the tuple a dead letter.
    A TIMESTAMP without a zone is in the session's time zone.
    """

    def __init__(self, context: SourceContext) -> None:
        assert context.rows is not None
        self._rows, self._schema = context.rows, context.schema
        self._most = context.options.whole("rowsPerPoll", 1000)
        # Arrow reads a time without a zone as UTC.
        self._zone = context.time_zone
        instants = [field for field in self._schema if has_instants(field.type)]
        self._without_zone = [] if self._zone == ZONE else instants
        self._next = 0
        self._reader: RowReader | None = None
        self._last: Polled | None = None

    def resume(self, position: Mapping[str, str]) -> None:
        self._next = int(position.get("row", "0"))

    def poll(self) -> Polled | None:
        if self._last is not None:
            return self._last
        if self._reader is None:
            self._reader = RowReader(partial(self._rows, self._next), self._most)
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

    def _one_by_one(self, rows: list[Mapping[str, Any]]) -> tuple[pa.Table, tuple[Letter, ...]]:
        tables, letters = [], []
        for number, row in enumerate(rows, self._next):
            try:
                tables.append(self._table([row]))
            except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
                if isinstance(error, MemoryError):
                    raise  # not for what the row contains
                letters.append(Letter(f"row {number}", repr(row), str(error)))
        table = pa.concat_tables(tables) if tables else self._schema.empty_table()
        return table, tuple(letters)
