"""A self-test at start: does this version of Spark run plans as the driver lane expects?"""

import logging
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.types import IntegerType, StringType, StructField, StructType, TimestampType

from headgate.spark.jvm.arrow_frames import collected, frame_of
from headgate.spark.jvm.errors import cause_of
from headgate.spark.jvm.lane.plan_runner import DriverLane
from headgate.spark.jvm.query.plans import Plans
from headgate.spark.jvm.session import START_SETTINGS
from headgate.spark.jvm.types import arrow_schema

log = logging.getLogger("headgate.spark")

SCHEMA = StructType(
    [
        StructField("k", StringType()),
        StructField("v", IntegerType()),
        StructField("ts", TimestampType()),
    ]
)
QUERIES = {
    "projection": "SELECT upper(k) AS k, v + 1 AS v FROM hg_left WHERE v % 2 = 0",
    "aggregate": "SELECT k, count(*) AS n, sum(v) AS s, avg(v) AS m FROM hg_left GROUP BY k",
    "join": "SELECT a.k, b.v FROM hg_left a LEFT JOIN hg_right b ON a.k = b.k AND a.v < b.v",
    "session": "SELECT k, session_window.end AS e, count(*) AS n FROM hg_left"
    " GROUP BY k, session_window(ts, '2 seconds')",
}
"""One query for each kind of operator that the driver lane relies on."""

_LOCK = threading.Lock()
_WORKS: dict[Any, bool] = {}


def driver_lane(session: SparkSession, folder: Path | None = None) -> DriverLane:
    """Return the driver lane of an application. It is off if the self-test fails.

    Args:
        session: a session of Headgate's own; its settings are changed.
        folder: the folder for row files while shared memory is full.
    """
    lane = DriverLane(session, folder)
    with _LOCK:
        jvm = session._jvm
        if jvm not in _WORKS:
            _warn_of_settings(session)
            _WORKS[jvm] = self_test(session, lane)
        lane.enabled = _WORKS[jvm]
    return lane


def self_test(session: SparkSession, lane: DriverLane) -> bool:
    """Return True if both lanes compute the same rows; log a warning if they do not."""
    plans = Plans(session)
    tables = {"hg_left": _rows(12), "hg_right": _rows(5)}
    for name in tables:
        plans.relation(name, SCHEMA).createOrReplaceTempView(name)
    try:
        for kind, text in QUERIES.items():
            plan = plans.of(session.sql(text))
            frames = {name: frame_of(session, table, SCHEMA) for name, table in tables.items()}
            by_job = _sorted(collected(plan.frame(session, frames)))
            in_driver = _sorted(lane.prepare(plan)(tables))
            if in_driver != by_job:
                raise AssertionError(f"{kind}: {in_driver} instead of {by_job}")
    except Exception as error:  # another version of Spark may fail in any way
        log.warning(
            "the driver lane is off, so every call is a Spark job and takes longer: this version of"
            " Spark does not run plans in the driver as expected (%s)",
            cause_of(error),
        )
        return False
    finally:
        for name in tables:
            session.catalog.dropTempView(name)
    return True


def _warn_of_settings(session: SparkSession) -> None:
    """Warn if a user's session lacks settings that Spark reads only at start."""
    settings: Any = session.sparkContext.getConf()
    missing = [key for key in START_SETTINGS if not settings.contains(key)]
    if missing:
        wanted = ", ".join(f"{key}={START_SETTINGS[key]}" for key in missing)
        log.warning(
            "the Spark session was started without settings of the driver lane: calls take"
            " milliseconds longer and, with more than 100 different queries, are compiled again"
            " each time. Fix: build the session with %s",
            wanted,
        )


def _rows(count: int) -> pa.Table:
    start = datetime(2024, 1, 1, tzinfo=UTC)
    rows = [
        {"k": f"k{n % 3}", "v": n, "ts": start + timedelta(seconds=n * (1 + n % 4))}
        for n in range(count)
    ]
    return pa.Table.from_pylist(rows, arrow_schema(SCHEMA))


def _sorted(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))
