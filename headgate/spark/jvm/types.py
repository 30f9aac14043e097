"""The Spark types whose values pass from a source to a sink unchanged.

A value passes as Arrow between Python and the JVM, is stored in Parquet trains that pyarrow or
Spark wrote, and leaves through a sink. If one of these cannot hold a type, Headgate refuses the
stream or query when it is added. At run time, the type would fail a call or the start of all
queries.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    CalendarIntervalType,
    CharType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    GeographyType,
    GeometryType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
    TimeType,
    UserDefinedType,
    VarcharType,
    VariantType,
    YearMonthIntervalType,
)

from headgate.errors import ConfigRefused, QueryRefused
from headgate.model.network.network import Path
from headgate.model.stream import Stream
from headgate.spark.jvm.errors import SPARK_ERRORS

ZONE = "UTC"
"""The time zone of instants in Arrow tables, trains and results, whatever the session's zone is."""

PASS: tuple[type[DataType], ...] = (
    *(BooleanType, ByteType, ShortType, IntegerType, LongType, FloatType, DoubleType, DecimalType),
    *(StringType, BinaryType, DateType, TimestampType, TimestampNTZType, DayTimeIntervalType),
    *(TimeType, VariantType, NullType),
)
"""Types that pass. Arrays, maps and structs pass if their parts pass."""

_AS_TEXT = "CAST(... AS STRING)"
_NO_ARROW = "for which PySpark has no Arrow type"

STAY: Mapping[type[DataType], tuple[str, str]] = {
    YearMonthIntervalType: (_NO_ARROW, _AS_TEXT),
    CalendarIntervalType: (_NO_ARROW, _AS_TEXT),
    # Spark reads both as strings, unless spark.sql.preserveCharVarcharTypeInfo is on.
    CharType: (_NO_ARROW, _AS_TEXT),
    VarcharType: (_NO_ARROW, _AS_TEXT),
    GeometryType: ("which Arrow and Parquet hold in different forms", "st_asbinary(...)"),
    GeographyType: ("which Arrow and Parquet hold in different forms", "st_asbinary(...)"),
    UserDefinedType: ("which only its own Python class can read", _AS_TEXT),
}
"""Types that do not pass, each with the reason and the SQL that makes a column which passes."""

NOT_WRITTEN: Mapping[str, tuple[type[DataType], ...]] = {
    "csv": (VariantType,),
    "console": (VariantType,),
    "jdbc": (VariantType, DayTimeIntervalType, TimeType),
}
"""Types that pass, but that sinks of this format cannot write."""

NOT_READ: Mapping[str, tuple[type[DataType], ...]] = {
    "csv": (ArrayType, MapType, StructType, NullType),
}
"""Types that pass, but that sources of this format cannot read."""

TIME_TYPE = "spark.sql.timeType.enabled"


@dataclass(frozen=True)
class Obstacle:
    """The reason why a column's type does not pass.

    Args:
        type: the type itself or, in an array, map or struct, the part that does not pass.
        reason: the reason, as a relative clause.
        cast: the SQL that makes a column which passes.
    """

    type: str
    reason: str
    cast: str = _AS_TEXT


def obstacle_in(kind: DataType, time_type: bool = True) -> Obstacle | None:
    """Return the reason why values of a type cannot pass; None if they can.

    Args:
        time_type: whether Spark reads and writes TIME, as set in the session.

    >>> obstacle_in(ArrayType(YearMonthIntervalType())).type
    'INTERVAL YEAR TO MONTH'
    """
    name = kind.simpleString().upper()
    match kind:
        case TimeType() if not time_type:
            return Obstacle(name, f"which Spark neither reads nor writes while {TIME_TYPE} is off")
        case ArrayType(elementType=NullType(), containsNull=False):
            # `array()` and `map()` have such types. Without a type, Arrow holds nothing but NULL.
            return Obstacle(name, "whose elements have no type", "CAST(... AS ARRAY<STRING>)")
        case MapType(keyType=NullType()):
            return Obstacle(name, "whose keys have no type", "CAST(... AS MAP<STRING, STRING>)")
        case ArrayType():
            return obstacle_in(kind.elementType, time_type)
        case MapType():
            return obstacle_in(kind.keyType, time_type) or obstacle_in(kind.valueType, time_type)
        case StructType():
            return _obstacle_in_fields(kind, time_type)
    if isinstance(kind, PASS):
        return None
    reason, cast = next(
        (facts for stays, facts in STAY.items() if isinstance(kind, stays)),
        ("which Headgate does not know", _AS_TEXT),
    )
    return Obstacle(name, reason, cast)


def _obstacle_in_fields(kind: StructType, time_type: bool) -> Obstacle | None:
    name = kind.simpleString().upper()
    if not kind.fields:
        return Obstacle(name, "which Parquet cannot hold")
    if len({field.name.lower() for field in kind.fields}) < len(kind.fields):
        return Obstacle(name, "which has two fields of one name", "to_json(...)")
    parts = (obstacle_in(field.dataType, time_type) for field in kind.fields)
    return next((part for part in parts if part is not None), None)


def part_of(kind: DataType, types: tuple[type[DataType], ...]) -> DataType | None:
    """Return the type itself, or its first inner part, that is one of `types`; None if none is.

    >>> part_of(MapType(StringType(), VariantType()), (VariantType,))
    VariantType()
    """
    if isinstance(kind, types):
        return kind
    parts: list[DataType] = []
    if isinstance(kind, ArrayType):
        parts = [kind.elementType]
    elif isinstance(kind, MapType):
        parts = [kind.keyType, kind.valueType]
    elif isinstance(kind, StructType):
        parts = [field.dataType for field in kind.fields]
    matches = (part_of(part, types) for part in parts)
    return next((match for match in matches if match is not None), None)


def arrow_schema(schema: StructType) -> pa.Schema:
    """Return the Arrow schema of a Spark schema. Every value may be NULL, except keys of maps.

    A field that Spark declares NOT NULL is NULL in Arrow if the struct around it is NULL.
    """
    fields = to_arrow_schema(nullable(schema.json()), timezone=ZONE)
    return pa.schema([_nullable(field) for field in fields])


def nullable(text: str) -> StructType:
    """Return the schema of a JSON text of Spark's, with NULL allowed everywhere.

    In `explode(array())`, Spark declares a column of type VOID as NOT NULL, which Arrow refuses.
    """
    for key in ("nullable", "containsNull", "valueContainsNull"):
        text = text.replace(f'"{key}":false', f'"{key}":true')
    schema: StructType = StructType.fromJson(json.loads(text))
    return schema


def _nullable(field: Any) -> Any:
    kind = field.type
    if pa.types.is_list(kind):
        kind = pa.list_(_nullable(kind.value_field))
    elif pa.types.is_map(kind):
        key = _nullable(kind.key_field).with_nullable(False)
        kind = pa.map_(key, _nullable(kind.item_field))
    elif pa.types.is_struct(kind):
        kind = pa.struct([_nullable(part) for part in kind])
    return field.with_type(kind).with_nullable(True)


def refuse_outputs(session: SparkSession, path: Path) -> None:
    """Refuse a query if one of its output columns has a type that cannot reach its sink.

    Raises:
        QueryRefused: the error names the column, its type and a cast that passes.
    """
    format = path.query.sink.format
    for field in _output_fields(path):
        column = "`" + str(field["name"]).replace("`", "``") + "`"
        try:
            kind = StructType.fromJson({"type": "struct", "fields": [field]}).fields[0].dataType
        except SPARK_ERRORS:
            name = str(field["type"]).upper()
            obstacle: Obstacle | None = Obstacle(name, "which PySpark does not know")
        else:
            obstacle = obstacle_in(kind, _has_time_type(session))
            if obstacle is None and (part := part_of(kind, NOT_WRITTEN.get(format, ()))):
                name = part.simpleString().upper()
                obstacle = Obstacle(name, f"which sinks of format {format} cannot write")
        if obstacle is not None:
            raise QueryRefused(
                query=path.query.name, clause=f"column {column}",
                reason=f"has the type {obstacle.type}, {obstacle.reason}",
                fix=f"write {obstacle.cast} AS {column}",
            )  # fmt: skip


def refuse_columns(session: SparkSession, stream: Stream, schema: StructType) -> None:
    """Refuse a stream if one of its columns has a type that its source or its log cannot hold.

    Raises:
        ConfigRefused: the error names the column, its type and what to declare instead.
    """
    for field in schema.fields:
        obstacle = obstacle_in(field.dataType, _has_time_type(session))
        if obstacle is None and (part := part_of(field.dataType, NOT_READ.get(stream.format, ()))):
            name = part.simpleString().upper()
            obstacle = Obstacle(name, f"which sources of format {stream.format} cannot read")
        if obstacle is not None:
            raise ConfigRefused(
                path=f"stream '{stream.name}'", key="schema",
                value=f"{field.name} {field.dataType.simpleString()}",
                expected=f"without {obstacle.type}, {obstacle.reason}; declare the column as STRING"
                " or leave it out",
            )  # fmt: skip


def output_schema(path: Path) -> StructType:
    """Return the schema of the output columns of a query that was not refused."""
    return StructType.fromJson({"type": "struct", "fields": list(_output_fields(path))})


def _output_fields(path: Path) -> Iterator[dict[str, Any]]:
    names = set(path.columns)
    return (field for field in json.loads(path.schema)["fields"] if field["name"] in names)


def _has_time_type(session: SparkSession) -> bool:
    try:
        return str(session.conf.get(TIME_TYPE)).lower() == "true"
    except SPARK_ERRORS:
        return True  # a version of Spark that has no such switch
