"""Recorded arrivals, from a column of a Parquet file."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from headgate.errors import ConfigRefused
from headgate.model.arrays import Floats
from headgate.workloads.value_checks import above_zero, demand, whole

ITS_NAME = re.compile(r"arrivals?|timestamp|ts|time", re.IGNORECASE)
LIKE_ITS_NAME = re.compile(
    r"(?:.*_)?(?:arrivals?|arrived|timestamp|ts|time)(?:_.*)?", re.IGNORECASE
)


def recorded(
    path: str | Path,
    column: str | None = None,
    *,
    scale: float = 1.0,
    tuples: int | None = None,
) -> Floats:
    """Return the arrival times of a Parquet file, in seconds from the first arrival.

    Args:
        column: a column of timestamps, or of numbers in seconds. Without it: the only such column,
            or the only one called arrival, timestamp, ts or time, or the only one whose name has
            such a word.
        scale: the factor that each time is multiplied by; 0.01 replays a hundred times as fast.
        tuples: how many arrivals to read from the beginning; None for all.
    """
    above_zero("recorded", scale=scale)
    if tuples is not None:
        whole("recorded", tuples=tuples)
    where, trace = f"trace '{path}'", _opened(path)
    with trace:
        name = _column(where, trace.schema_arrow, column)
        values = trace.read(columns=[name]).column(name)
    values = values if tuples is None else values.slice(0, tuples)
    demand(len(values) > 0, where, name, None, "at least one arrival: the trace is empty")
    demand(values.null_count == 0, where, name, None, "a time in every row: some are empty")
    times_s = _seconds(values) * scale
    demand(bool(np.isfinite(times_s).all()), where, name, None, "finite in every row")
    descents = np.flatnonzero(np.diff(times_s) < 0)
    if len(descents):
        row = int(descents[0]) + 1
        expected = f"in ascending order of time: row {row} is before row {row - 1}"
        demand(False, where, name, None, expected)
    return times_s


def _opened(path: str | Path) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(path)
    except (pa.ArrowInvalid, OSError) as error:
        missing = isinstance(error, FileNotFoundError)
        reason = "there is no such file" if missing else "it cannot be read as one"
        raise ConfigRefused(
            path="recorded", key="path", value=str(path), expected=f"a Parquet file: {reason}"
        ) from error


def _column(where: str, schema: pa.Schema, wanted: str | None) -> str:
    """Return the column of the times: the wanted one, or the one that stands out by type or name.

    Raises:
        ConfigRefused: it does not exist or holds no times, or several columns could be meant.
    """
    usable = [
        name for name in schema.names if _is_time(schema.field(schema.names.index(name)).type)
    ]
    if wanted is not None:
        names = ", ".join(schema.names)
        demand(wanted in schema.names, where, "column", wanted, f"one of {names}")
        demand(wanted in usable, where, "column", wanted, "of numbers or timestamps")
        return wanted
    for candidates in (
        usable,
        [name for name in usable if ITS_NAME.fullmatch(name)],
        [name for name in usable if LIKE_ITS_NAME.fullmatch(name)],
    ):
        if len(candidates) == 1:
            return candidates[0]
    expected = f"named, since none stands out; numbers or timestamps: {', '.join(usable) or 'none'}"
    raise ConfigRefused(path=where, key="column", value=None, expected=expected)


def _is_time(kind: pa.DataType) -> bool:
    return pa.types.is_timestamp(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind)


def _seconds(values: "pa.ChunkedArray[Any]") -> Floats:
    """Return seconds from the first value; timestamps are subtracted as integers, to be exact."""
    kind = values.type
    if pa.types.is_timestamp(kind):
        ticks = pc.cast(values, pa.int64()).to_numpy()
        a_second = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}[kind.unit]
        return np.asarray((ticks - ticks[0]) / a_second, dtype=np.float64)
    numbers = values.to_numpy().astype(np.float64)
    return np.asarray(numbers - numbers[0], dtype=np.float64)
