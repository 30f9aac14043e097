"""Comparison of two answers: their types, and their rows in any order."""

import math
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructField, StructType

Rows = Counter[tuple[Any, ...]]

RELATIVE = 1e-9
OUT_OF_ARROW = ("interval", "time(", "variant")
"""Types that only Spark, not Arrow, reads back from Parquet as they were written."""


class Answer:
    """The columns of an answer, with their types, and its rows as plain values."""

    def __init__(self, columns: list[tuple[str, str]] | None, rows: Rows) -> None:
        self.columns, self.rows = columns, rows


def needs_spark(schema: StructType) -> bool:
    """Return True if only Spark can read the types of an answer's files."""
    return any(word in schema.simpleString() for word in OUT_OF_ARROW)


def of_frame(frame: DataFrame, by_spark: bool = False) -> Answer:
    """Return the answer of a frame.

    Args:
        by_spark: whether types are in Spark's words even if Arrow has the types, too.
    """
    if by_spark or needs_spark(frame.schema):
        names = [(field.name, field.dataType.simpleString()) for field in frame.schema.fields]
        positional = frame.toDF(*(f"c{number}" for number in range(len(names))))
        texts = positional.selectExpr(
            *(f"CAST(c{n} AS STRING) AS c{n}" if kind != "void" else f"CAST(NULL AS STRING) AS c{n}"
              for n, (_, kind) in enumerate(names))
        )  # fmt: skip
        return Answer(names, of_table(texts.toArrow()).rows)
    # `toArrow` refuses a column of type VOID that Spark calls NOT NULL, as of `explode(array())`.
    batches = frame._collect_as_arrow()  # type: ignore[operator]
    return of_table(pa.Table.from_batches(batches)) if batches else Answer(None, Counter())


def of_folder(session: SparkSession, folder: Path, schema: StructType) -> Answer:
    """Return the content of a query's files, read as any reader would: no hidden files."""
    files = sorted(folder.glob("[!_.]*.*"))
    if not files:
        return Answer(None, Counter())
    format = files[0].suffix[1:]
    if format != "parquet":
        names = [f"c{n}" for n in range(len(schema))] if format == "csv" else schema.names
        fields = [
            StructField(name, field.dataType) for name, field in zip(names, schema, strict=True)
        ]
        reader = session.read.schema(StructType(fields)).format(format)
        return of_frame(reader.load([*map(str, files)]).toDF(*schema.names))
    if needs_spark(schema):
        return of_frame(session.read.parquet(*map(str, files)), by_spark=True)
    tables = [pq.ParquetFile(file).read() for file in files]
    answer = of_table(tables[0])
    for table in tables[1:]:
        more = of_table(table)
        if more.columns != answer.columns:
            raise ValueError(f"files of one query differ: {answer.columns}, {more.columns}")
        answer.rows.update(more.rows)
    return answer


def of_table(table: pa.Table) -> Answer:
    columns = [(field.name, _kind(field.type)) for field in table.schema]
    values = [_plain_column(column) for column in table.columns]
    rows = zip(*values, strict=True) if values else [()] * table.num_rows
    return Answer(columns, Counter(tuple(map(_plain, row)) for row in rows))


def difference(expected: Answer, answer: Answer, floats: bool) -> str:
    """Return how an answer differs from the expected one; an empty text if it does not."""
    if answer.columns is not None and not _same_columns(expected, answer.columns):
        return f"columns are {answer.columns}, expected {expected.columns}"
    missing, extra = expected.rows - answer.rows, answer.rows - expected.rows
    if floats and missing and missing.total() == extra.total():
        missing, extra = _unmatched(missing, extra)
    if not missing and not extra:
        return ""
    return (
        f"{missing.total()} rows missing, {extra.total()} too many of"
        f" {expected.rows.total()}: missing {_some(missing)}, too many {_some(extra)}"
    )


def _same_columns(expected: Answer, columns: list[tuple[str, str]]) -> bool:
    """Return True if names and types are the same, except that Parquet has no void type."""
    if expected.columns is None or len(expected.columns) != len(columns):
        return expected.columns is None
    return all(
        name == other and (kind == other_kind or ("void" in kind and "void" not in other_kind))
        for (name, kind), (other, other_kind) in zip(expected.columns, columns, strict=True)
    )


def _some(rows: Rows) -> str:
    return str(list(rows.elements())[:3])[:600]


def _unmatched(missing: Rows, extra: Rows) -> tuple[Rows, Rows]:
    """Remove pairs of rows that differ only in the last digits of floating-point values."""
    left = list(extra.elements())
    unmatched = []
    for row in missing.elements():
        for other in left:
            if _close(row, other):
                left.remove(other)
                break
        else:
            unmatched.append(row)
    return Counter(unmatched), Counter(left)


def _close(one: Any, other: Any) -> bool:
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(_close, one, other))
    if isinstance(one, _Float) and isinstance(other, _Float):
        return math.isclose(one.value, other.value, rel_tol=RELATIVE, abs_tol=RELATIVE)
    return bool(one == other)


class _Float:
    """A floating-point value that equals only itself: NaN equals NaN, and -0.0 is not 0.0."""

    def __init__(self, value: float) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Float) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        return repr(self.value)


def _plain(value: Any) -> Any:
    match value:
        case float():
            return _Float(value)
        case Decimal():
            return str(value)
        case bytes():
            return value.decode(errors="surrogateescape")
        case list() | tuple():
            return tuple(map(_plain, value))
        case dict():
            return tuple((name, _plain(inner)) for name, inner in value.items())
    return value


def _plain_column(column: pa.ChunkedArray) -> list[Any]:
    """Return the values of a column as plain Python values.

    Times and dates become numbers, which have a larger range than Python's. Texts become bytes,
    because they need not be UTF-8.
    """
    micros = column.cast(_stored(column.type, pa.timestamp("us"), pa.date32()))
    values: list[Any] = micros.cast(_stored(column.type, pa.int64(), pa.int32())).to_pylist()
    return values


def _stored(kind: pa.DataType, instant: pa.DataType, day: pa.DataType) -> pa.DataType:
    """Return a type in which times are `instant`, dates are `day`, and texts are bytes."""
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", tz=kind.tz) if pa.types.is_timestamp(instant) else instant
    if pa.types.is_date(kind):
        return day
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return pa.large_binary()
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(_stored(kind.value_type, instant, day))
    if pa.types.is_map(kind):
        inner = (_stored(inner, instant, day) for inner in (kind.key_type, kind.item_type))
        return pa.map_(*inner)
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _stored(field.type, instant, day)) for field in kind])
    return kind


def _kind(kind: pa.DataType) -> str:
    """Return the name of a type, without storage units, zones and nullability."""
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz else "timestamp_ntz"
    if pa.types.is_large_string(kind) or pa.types.is_string(kind):
        return "string"
    if pa.types.is_large_binary(kind) or pa.types.is_binary(kind):
        return "binary"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"array<{_kind(kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"map<{_kind(kind.key_type)},{_kind(kind.item_type)}>"
    if pa.types.is_struct(kind):
        fields = ",".join(f"{field.name}:{_kind(field.type)}" for field in kind)
        return f"struct<{fields}>"
    return str(kind)
