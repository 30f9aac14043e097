"""The driver reads from Parquet files what `spark.read` reads, row by row."""

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from driver_reads import polled_of, read_as_spark, source_over
from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

DDL = (
    "i INT, l BIGINT, x DOUBLE, b BOOLEAN, t STRING, d DATE, m DECIMAL(12,3), ts TIMESTAMP,"
    " wall TIMESTAMP_NTZ, raw BINARY, many ARRAY<INT>, pairs MAP<STRING, INT>,"
    " inner STRUCT<a: INT, `odd name`: STRING, deep: STRUCT<z: DECIMAL(5,1)>>"
)
ARROW = pa.schema(
    [
        ("i", pa.int32()), ("l", pa.int64()), ("x", pa.float64()), ("b", pa.bool_()),
        ("t", pa.string()), ("d", pa.date32()), ("m", pa.decimal128(12, 3)),
        ("ts", pa.timestamp("us", "UTC")), ("wall", pa.timestamp("us")), ("raw", pa.binary()),
        ("many", pa.list_(pa.int32())), ("pairs", pa.map_(pa.string(), pa.int32())),
        ("inner", pa.struct([
            ("a", pa.int32()), ("odd name", pa.string()),
            ("deep", pa.struct([("z", pa.decimal128(5, 1))])),
        ])),
    ]
)  # fmt: skip
FULL: dict[str, Any] = {
    "i": -(2**31), "l": 2**63 - 1, "x": 0.1, "b": True, "t": 'Grüße, "\u2028" ☃',
    "d": date(1582, 10, 15), "m": Decimal("-123456789.125"),
    "ts": datetime(1931, 1, 1, 0, 0, 0, 1, tzinfo=UTC),
    "wall": datetime.fromisoformat("2024-02-29"),
    "raw": b"\x00\xff", "many": [1, None, 3], "pairs": [("a", 1), ("b", None)],
    "inner": {"a": 1, "odd name": "x", "deep": {"z": Decimal("7.5")}},
}  # fmt: skip
EMPTY: dict[str, Any] = dict.fromkeys(FULL)


def test_parquet_of_every_type(session: SparkSession, tmp_path: Path) -> None:
    part = {**FULL, "many": [], "pairs": [], "inner": {"a": None, "odd name": None, "deep": None}}
    table = pa.Table.from_pylist([FULL, EMPTY, part], ARROW)
    pq.write_table(table, tmp_path / "a.parquet")
    pq.write_table(table.slice(0, 0), tmp_path / "empty.parquet")
    polled = read_as_spark(session, "parquet", tmp_path, DDL)
    assert polled.table.num_rows == 3
    assert set(polled.position) == {"a.parquet", "empty.parquet"}


def test_parquet_with_other_columns_in_another_case_and_order(
    session: SparkSession, tmp_path: Path
) -> None:
    inner = pa.array([{"Z": 1, "A": 5}, None], pa.struct([("Z", pa.int8()), ("A", pa.int32())]))
    table = pa.table(
        {"EXTRA": [1, 2], "T": ["x", None], "Inner": inner, "I": pa.array([3, 4], "int32")}
    )
    pq.write_table(table, tmp_path / "a.parquet")
    ddl = "i INT, missing STRING, t STRING, inner STRUCT<a: INT, gone: ARRAY<INT>>"
    polled = read_as_spark(session, "parquet", tmp_path, ddl)
    assert polled.table["inner"].to_pylist() == [{"a": 5, "gone": None}, None]


def test_parquet_of_spark_itself_and_of_old_instants(session: SparkSession, tmp_path: Path) -> None:
    frame = session.sql(
        "SELECT id, timestamp_micros(id * 7777777777777 - 3) AS ts, array(named_struct('a', id))"
        " AS many FROM range(-3, 4)"
    )
    frame.coalesce(1).write.parquet(str(tmp_path / "new"))
    session.conf.set("spark.sql.parquet.outputTimestampType", "INT96")
    try:
        frame.coalesce(1).write.parquet(str(tmp_path / "old"))
    finally:
        session.conf.unset("spark.sql.parquet.outputTimestampType")
    ddl = "id BIGINT, ts TIMESTAMP, many ARRAY<STRUCT<a: BIGINT>>"
    for folder in ("new", "old"):
        assert read_as_spark(session, "parquet", tmp_path / folder, ddl).table.num_rows == 7


def test_instants_finer_than_microseconds_are_cut_downwards(
    session: SparkSession, tmp_path: Path
) -> None:
    instants = pa.array([1_001, -1, -1_001, None], pa.timestamp("ns", "UTC"))
    pq.write_table(pa.table({"ts": instants}), tmp_path / "a.parquet", version="2.6")
    polled = polled_of(source_over(session, "parquet", tmp_path, "ts TIMESTAMP", {}))
    microseconds = polled.table["ts"].cast(pa.int64()).to_pylist()
    assert microseconds == [1, -1, -2, None]


def test_a_name_of_the_path_is_no_column(session: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "year=2020"
    folder.mkdir()
    pq.write_table(pa.table({"year": [7], "a": [1]}), folder / "a.parquet")
    polled = polled_of(source_over(session, "parquet", folder, "year BIGINT, a BIGINT", {}))
    assert polled.table.to_pylist() == [{"year": 7, "a": 1}]
