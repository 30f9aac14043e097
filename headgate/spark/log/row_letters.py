"""Dead letters of queries: tuples at which an expression failed."""

import base64
from collections.abc import Iterator, Mapping
from datetime import date
from math import isfinite
from typing import Any

import pyarrow as pa

from headgate.model.stream import ARRIVED_AT
from headgate.model.window import HIDDEN
from headgate.spark.output import RowLetter


def letters_of(
    stream: str, rows: pa.Table, first: int, causes: Mapping[int, str]
) -> Iterator[RowLetter]:
    """Yield the letters of bad rows, in their order.

    Args:
        first: the number of the first row in its stream.
        causes: by number among the rows, why it is bad.
    """
    for row, cause in sorted(causes.items()):
        values = {
            name: _value(rows[name][row])
            for name in rows.column_names
            if name != ARRIVED_AT and not name.startswith(HIDDEN)
        }
        yield RowLetter(stream, first + row, cause, values)


def _value(scalar: Any) -> Any:
    """Return a value as JSON can have it."""
    try:
        return plain(scalar.as_py())
    except (ValueError, OverflowError):  # a time beyond the years that Python supports
        return str(scalar.cast(pa.int64()).as_py())


def plain(value: Any) -> Any:
    """Return a value of Python's as JSON can have it.

    >>> from datetime import datetime
    >>> from decimal import Decimal
    >>> plain({"a": [1, float("inf"), Decimal("1.50"), b"x"], "at": datetime(2026, 1, 2)})
    {'a': [1, 'inf', '1.50', 'eA=='], 'at': '2026-01-02T00:00:00'}
    """
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if isfinite(value) else str(value)
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value.isoformat() if isinstance(value, date) else str(value)
