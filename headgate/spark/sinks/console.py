"""The console as a sink."""

import json

import pyarrow as pa

from headgate.extensions import Receiver, SinkContext


class Console(Receiver):
    """A sink that prints every row as a line of JSON after the query's name.

    If two columns share a name, both are printed.
    """

    def __init__(self, context: SinkContext) -> None:
        self._query = context.query

    def deliver(self, rows: pa.Table, key: str) -> None:
        names = [_json(name) for name in rows.column_names]
        tuples = zip(*(column.to_pylist() for column in rows.columns), strict=True)
        lines = [
            ", ".join(f"{name}: {_json(value)}" for name, value in zip(names, row, strict=True))
            for row in tuples
        ]
        print("".join(f"{self._query}: {{{line}}}\n" for line in lines), end="", flush=True)


def _json(value: object) -> str:
    return json.dumps(value, default=str, ensure_ascii=False)
