"""A source and a sink for Headgate: lines that are appended to a text file, a table of SQLite."""

import sqlite3
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

import headgate as hg
from headgate.extensions import SinkContext, SourceContext, row_keys

MOST_BYTES = 1 << 20


@hg.source(
    "tail",
    options={"file": "the text file whose lines are read"},
    required={"file": "/var/log/syslog"},
    columns="line STRING",
)
class Tail(hg.Source):
    """Lines of a text file. The position is the number of bytes that the journal has."""

    def __init__(self, context: SourceContext) -> None:
        self._file, self._schema = Path(context.options["file"]), context.schema
        self._offset = 0

    def resume(self, position: Mapping[str, str]) -> None:
        self._offset = int(position.get("offset", "0"))

    def poll(self) -> hg.Polled | None:
        with self._file.open("rb") as file:
            file.seek(self._offset)
            data = file.read(MOST_BYTES)
        data = data[: data.rfind(b"\n") + 1]  # the last line may still be written
        if not data:
            return None
        lines = data.decode(errors="replace").split("\n")[:-1]
        table = pa.table({"line": lines}, schema=self._schema)
        return hg.Polled(table, {"offset": str(self._offset + len(data))})

    def taken(self, polled: hg.Polled) -> None:
        self._offset = int(polled.position["offset"])


@hg.sink(
    "sqlite",
    options={"file": "the database", "table": "the table, which is created if it is missing"},
    required={"file": "results.db", "table": "errors"},
    delivery="exactly once",
)
class Sqlite(hg.Receiver):
    """A table of SQLite. Every row is stored with its key, so that it is stored once."""

    def __init__(self, context: SinkContext) -> None:
        self._file, self._table = context.options["file"], _quoted(context.options["table"])
        self._columns = ", ".join(map(_quoted, ["headgate_key", *context.schema.names]))
        self._marks = ", ".join("?" * (1 + len(context.schema.names)))

    def open(self) -> None:
        self._database = sqlite3.connect(self._file)
        self._database.execute(
            f"CREATE TABLE IF NOT EXISTS {self._table} ({self._columns}, UNIQUE (headgate_key))"
        )

    def deliver(self, rows: pa.Table, key: str) -> None:
        columns = [column.to_pylist() for column in rows.columns]
        values = zip(row_keys(rows, key), *columns, strict=True)
        statement = f"INSERT OR IGNORE INTO {self._table} ({self._columns}) VALUES ({self._marks})"
        with self._database:
            self._database.executemany(statement, values)

    def close(self) -> None:
        self._database.close()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
