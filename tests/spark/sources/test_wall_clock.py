"""A time without a zone becomes the same instant as in Spark."""

from datetime import datetime

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from headgate.spark.jvm.time_zone import SESSION_ZONE, same_zone, zone_of
from headgate.spark.sources.wall_clock import instants_of, tzinfo_of, with_zone

pytestmark = [pytest.mark.spark, pytest.mark.slow]

TIMES = [
    *(f"2024-03-31 0{hour}:30:00.000001" for hour in range(4)),  # clocks go forward in Berlin
    *(f"2024-10-27 0{hour}:30:00" for hour in range(4)),  # and back
    *(f"2024-03-10 0{hour}:30:00" for hour in range(4)),  # in America
    *(f"2024-11-03 0{hour}:30:00" for hour in range(4)),
    "1850-01-01 00:00:00",  # local mean time, with seconds in its offset
    "1969-12-31 23:59:59.999999",
]


def test_a_time_without_a_zone_is_the_instant_that_spark_makes_of_it(spark: SparkSession) -> None:
    session = spark.newSession()
    times = [*map(datetime.fromisoformat, TIMES), None]
    column = pa.chunked_array([pa.array(times, pa.timestamp("us"))])
    values = ", ".join(f"(TIMESTAMP_NTZ'{text}')" for text in TIMES)
    for zone in (
        *("Europe/Berlin", "America/New_York", "Asia/Kolkata", "PST", "Z", "UTC"),
        *("+5:30", "-03:00", "GMT+2", "UTC-01:15"),
    ):
        session.conf.set(SESSION_ZONE, zone)
        sql = f"SELECT unix_micros(CAST(t AS TIMESTAMP)) FROM VALUES {values}, (NULL) AS v(t)"
        expected = [row[0] for row in session.sql(sql).collect()]
        assert instants_of(column, zone_of(session)).cast(pa.int64()).to_pylist() == expected, zone


def test_times_get_a_zone_at_any_depth_and_keep_the_one_they_have() -> None:
    wall, zone = datetime.fromisoformat("2024-07-01 12:00:00"), tzinfo_of("Europe/Berlin")
    zoned = datetime.fromisoformat("2024-07-01 12:00:00+05:00")
    instant = pa.timestamp("us", "UTC")
    kind = pa.struct([("m", pa.map_(pa.string(), pa.list_(instant))), ("w", pa.timestamp("us"))])
    value = with_zone({"m": {"a": [wall, zoned, None]}, "w": wall}, kind, zone)
    assert value == {"m": [("a", [wall.replace(tzinfo=zone), zoned, None])], "w": wall}
    assert with_zone(None, kind, zone) is None


def test_zones_are_the_same_if_their_rules_are(spark: SparkSession) -> None:
    assert same_zone(spark, "UTC", "Etc/UTC")
    assert same_zone(spark, "Asia/Kolkata", "Asia/Calcutta")
    assert not same_zone(spark, "UTC", "Europe/London")
