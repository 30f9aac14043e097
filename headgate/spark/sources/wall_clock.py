"""Times without a zone, read as Spark reads them: on the wall clock of the session's time zone."""

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa

_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d\d):(\d\d)(?::(\d\d))?")


@cache
def tzinfo_of(zone: str) -> tzinfo:
    """Return the time zone that has a name in Java.

    >>> tzinfo_of("GMT-05:30").utcoffset(None)
    datetime.timedelta(days=-1, seconds=66600)
    """
    if (offset := _OFFSET.fullmatch(zone)) is not None:
        hours, minutes, seconds = (int(digits or 0) for digits in offset.groups()[1:])
        ahead = timedelta(hours=hours, minutes=minutes, seconds=seconds)
        return timezone(-ahead if offset[1] == "-" else ahead)
    return UTC if zone in ("Z", "UT") else ZoneInfo(zone)


def with_zone(value: Any, kind: Any, zone: tzinfo) -> Any:
    """Return a value in which every instant has a zone, at any depth of nesting.

    In the hour that a clock skips, the offset before the change applies; in the hour that it
    repeats, the first offset. Java does the same, and Python does with `fold=0`.

    Args:
        kind: Arrow's type of the column; values of other types stay as they are.
    """
    if pa.types.is_timestamp(kind):
        bare = isinstance(value, datetime) and kind.tz is not None and value.tzinfo is None
        return value.replace(tzinfo=zone, fold=0) if bare else value
    if value is None or not has_instants(kind):
        return value
    if pa.types.is_map(kind):
        pairs = value.items() if isinstance(value, dict) else value
        return [
            (with_zone(key, kind.key_type, zone), with_zone(item, kind.item_type, zone))
            for key, item in pairs
        ]
    if pa.types.is_struct(kind):
        return {field.name: with_zone(value.get(field.name), field.type, zone) for field in kind}
    return [with_zone(item, kind.value_type, zone) for item in value]


@cache
def has_instants(kind: pa.DataType) -> bool:
    """Return True if a type is, or contains, an instant: a timestamp with a zone."""
    if pa.types.is_timestamp(kind):
        return kind.tz is not None
    return any(has_instants(kind.field(index).type) for index in range(kind.num_fields))


def instants_of(column: Any, zone: str) -> Any:
    """Return a column of timestamps as instants; those without a zone are in the given one."""
    instants = pa.timestamp("us", "UTC")
    if column.type.tz is not None or zone == "UTC":
        return column.cast(instants)
    values = (with_zone(value, instants, tzinfo_of(zone)) for value in column.to_pylist())
    return pa.chunked_array([pa.array(list(values), instants)])
