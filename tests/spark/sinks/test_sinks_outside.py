"""What is written to a database and to Kafka, value by value."""

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from derby import Database
from driver_reads import schema_of
from pyspark.sql import SparkSession

from headgate.spark.sinks.kafka import records_of

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture
def database(spark: SparkSession, tmp_path: Path) -> Database:
    return Database(spark, tmp_path)


def test_a_result_that_comes_twice_leaves_the_table_as_once(database: Database) -> None:
    database.execute("CREATE TABLE t (a INT, b VARCHAR(9), c DOUBLE, kept INT DEFAULT 7)")
    sink = database.sink("t", "a, B")
    first = pa.table({"a": [1, 1, None, 2], "b": ["x", "y", "n", None], "c": [0.5, 1.5, 2.5, 3.5]})
    second = pa.table({"a": [1, None, 3], "b": ["x", "n", "z"], "c": [9.0, None, 4.5]})
    for table in (first, first, second, second):
        sink.deliver(table, "q/0-0")
    assert database.rows("SELECT * FROM t ORDER BY a, b") == [
        ["1", "x", "9.0", "7"],
        ["1", "y", "1.5", "7"],
        ["2", None, "3.5", "7"],
        ["3", "z", "4.5", "7"],
        [None, "n", None, "7"],
    ]


def test_of_rows_with_one_key_the_last_counts_and_a_key_may_be_all(database: Database) -> None:
    database.execute("CREATE TABLE t (a INT PRIMARY KEY, b INT)")
    database.sink("t", "a").deliver(pa.table({"a": [1, 1], "b": [5, 6]}), "q/0-0")
    database.sink("t", "a").deliver(pa.table({"a": [1, 2]}), "q/0-0")
    assert database.rows("SELECT * FROM t ORDER BY a") == [["1", "6"], ["2", None]]


def test_every_type_arrives(database: Database) -> None:
    database.execute(
        'CREATE TABLE t (k BIGINT PRIMARY KEY, yes BOOLEAN, day DATE, "AT" TIMESTAMP,'
        ' price DECIMAL(9,2), "Raw" VARCHAR(9) FOR BIT DATA, list VARCHAR(99))'
    )
    instant = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
    columns: dict[str, list[Any]] = {
        "K": [2**40, 1],
        "yes": [True, None],
        "day": [date(2026, 1, 2), None],
        "at": [instant.replace(tzinfo=None), None],
        "price": [Decimal("12.34"), None],
        "raw": [b"\x01\xff", None],
        "list": [[1, 2], None],
    }
    table = pa.table(columns)
    for _ in range(2):
        database.sink("t", "k").deliver(table, "q/0-0")
    none = [None] * 6
    assert database.rows("SELECT * FROM t ORDER BY k DESC") == [
        [str(2**40), "true", "2026-01-02", "2026-01-02 03:04:05.678901", "12.34", "01ff", "[1, 2]"],
        ["1", *none],
    ]


def test_an_instant_is_the_same_instant_in_the_table(
    spark: SparkSession, database: Database
) -> None:
    database.execute('CREATE TABLE t (k INT PRIMARY KEY, "AT" TIMESTAMP)')
    instants = [
        datetime(2026, 7, 2, 3, 4, 5, 678901, tzinfo=UTC),
        datetime(1960, 1, 1, 0, 0, 0, 5, UTC),
    ]
    database.sink("t", "k").deliver(pa.table({"k": [1, 2], "at": instants}), "q/0-0")
    rows = spark.read.jdbc(database.url, "t").orderBy("K").selectExpr("unix_micros(AT)").collect()
    micros = [pa.scalar(instant).cast(pa.int64()).as_py() for instant in instants]
    assert [row[0] for row in rows] == micros


def test_nothing_of_a_result_that_fails_stays(database: Database) -> None:
    database.execute("CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(3))")
    with pytest.raises(Exception, match="truncation"):
        database.sink("t", "a").deliver(
            pa.table({"a": [1, 2], "b": ["x", "much too long"]}), "q/0-0"
        )
    assert database.rows("SELECT * FROM t") == []


def test_a_column_that_the_table_lacks_is_named(database: Database) -> None:
    database.execute("CREATE TABLE t (a INT PRIMARY KEY)")
    with pytest.raises(LookupError, match="table t has no column b; it has A"):
        database.sink("t", "a").deliver(pa.table({"a": [1], "b": [2]}), "q/0-0")


def test_a_record_of_kafka_has_the_key_to_know_it_by(spark: SparkSession) -> None:
    schema = schema_of(spark, "a BIGINT, b STRING")
    frame = records_of(spark, pa.table({"a": [1, 2], "b": ["x", None]}), schema, "hot/0-3")
    header = "array<struct<key:string,value:binary>>"
    assert frame.schema.simpleString() == f"struct<key:string,value:string,headers:{header}>"
    assert [(row.key, row.value) for row in frame.collect()] == [
        ("hot/0-3/0", '{"a":1,"b":"x"}'),
        ("hot/0-3/1", '{"a":2}'),
    ]
    schema = schema_of(spark, "key STRING, value STRING")
    table = pa.table({"key": ["k"], "value": ["v"]})
    records = records_of(spark, table, schema, "hot/4-4").collect()
    assert [(row.key, row.value) for row in records] == [("k", "v")]
    assert records[0].headers[0].asDict() == {"key": "headgate_key", "value": b"hot/4-4/0"}
