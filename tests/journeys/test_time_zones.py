"""Queries in the time zone of the user's session answer as Spark in batch does in that zone."""

import json
import sqlite3
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from kit.batch import batch_session
from kit.gates import consume
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headgate import Headgate, Query, Sink, Stream
from headgate.errors import QueryRefused, RecoveryRefused
from headgate.spark.journal.journal import Journal
from headgate.spark.journal.journal_schema import VERSION

pytestmark = [pytest.mark.spark, pytest.mark.slow]

CHANGES = [
    datetime(2024, 3, 10, 7, tzinfo=UTC),  # New York
    datetime(2024, 3, 31, 1, tzinfo=UTC),  # Berlin
    datetime(2024, 10, 27, 1, tzinfo=UTC),
    datetime(2024, 11, 3, 6, tzinfo=UTC),
]
"""The instants at which clocks go forward in spring, and back in autumn."""

LAST = datetime(2025, 1, 1, tzinfo=UTC)
"""The time of the last tuple, which closes all windows before it."""

INSTANTS = [
    change + timedelta(minutes=30 * n, microseconds=n) for change in CHANGES for n in range(-6, 7)
] + [LAST]

WALL = [
    f"{day} 0{hour}:{minute}:00.000001"
    for day in ("2024-03-10", "2024-03-31", "2024-10-27", "2024-11-03")
    for hour in (0, 1, 2, 3)
    for minute in ("00", "30")
]
"""Wall-clock times: in one zone or another, some do not exist and some exist twice."""

FIELDS = (
    "ts, hour(ts) AS h, date_trunc('DAY', ts) AS d, CAST(ts AS STRING) AS t, to_date(ts) AS day,"
    " CAST('2024-03-31 02:30:00' AS TIMESTAMP) AS gap, TIMESTAMP'2024-11-03 01:30:00' AS twice,"
    " date_format(ts, 'yyyy-MM-dd HH:mm:ss XXX') AS f, ts + INTERVAL 1 DAY AS next,"
    " CAST(n AS TIMESTAMP) AS i, CAST(ts AS TIMESTAMP_NTZ) AS w, current_timezone() AS z"
)
HOURS = (
    "SELECT date_format(max(window.start), 'yyyy-MM-dd HH:mm') AS b, count(*) AS n,"
    " hour(min(ts)) AS f, max(window.end) AS e FROM s"
)
STATELESS = {
    "fields": f"SELECT {FIELDS} FROM s",
    "morning": "SELECT ts FROM s WHERE hour(ts) % 4 = 2 AND ts >= '2024-03-31'",
    "since": "SELECT ts FROM s WHERE ts >= TIMESTAMP'2024-10-27 02:30:00'",
    "until": "SELECT ts FROM s WHERE ts >= TIMESTAMP'2024-03-31 02:30:00'",
    "of_json": "SELECT ts, hour(ts) AS h, a, n FROM j",
    "of_csv": "SELECT ts, hour(ts) AS h FROM c",
    "of_csv_by_spark": "SELECT ts, hour(ts) AS h FROM c2",
    "of_python": "SELECT ts, hour(ts) AS h, a FROM p",
    "to_json": "SELECT ts, n, array(ts) AS a FROM s",
    "to_csv": "SELECT ts, n, CAST(ts AS DATE) AS d FROM s",
}
WINDOWS = {
    "hours": (f"{HOURS} [RANGE 1 HOUR]", f"{HOURS} GROUP BY window(ts, '1 hour')"),
    "days": (f"{HOURS} GROUP BY window(ts, '1 day')",) * 2,
    "slides": (
        f"{HOURS} [RANGE 1 DAY SLIDE 6 HOURS]",
        f"{HOURS} GROUP BY window(ts, '1 day', '6 hours')",
    ),
    "by_day": (
        "SELECT date_trunc('DAY', ts) AS d, count(*) AS n, max(window.end) AS e"
        " FROM s [RANGE 1 DAY] GROUP BY date_trunc('DAY', ts)",
        "SELECT date_trunc('DAY', ts) AS d, count(*) AS n, max(window.end) AS e FROM s"
        " GROUP BY window(ts, '1 day'), date_trunc('DAY', ts)",
    ),
    "wall": (
        HOURS.replace("FROM s", "FROM w [RANGE 1 DAY]"),
        HOURS.replace("FROM s", "FROM w GROUP BY window(ts, '1 day')"),
    ),
    "sessions": (
        "SELECT date_format(session_window.end, 'MM-dd HH:mm') AS e, count(*) AS n FROM s"
        " GROUP BY session_window(ts, '2 hours')",
    ) * 2,
}  # fmt: skip
"""Queries with windows, and equivalent queries for Spark in batch."""


def in_zone(spark: SparkSession, zone: str) -> SparkSession:
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", zone)
    return session


def write_sources(folder: Path) -> None:
    """Write instants and wall-clock times as Parquet, JSON and CSV."""
    for name in ("s", "w", "j", "c"):
        (folder / name).mkdir()
    walls = [datetime.fromisoformat(text) for text in sorted(WALL)]
    instants = pa.array(INSTANTS, pa.timestamp("us", "UTC"))
    wall = pa.array([walls[n % len(walls)] for n in range(len(INSTANTS))], pa.timestamp("us"))
    pq.write_table(pa.table({"ts": instants, "n": wall}), folder / "s" / "0.parquet")
    times = pa.array([*walls, LAST.replace(tzinfo=None)], pa.timestamp("us"))
    pq.write_table(pa.table({"ts": times}), folder / "w" / "0.parquet")
    lines = [json.dumps({"ts": text, "a": [text, f"{text}Z"], "n": text}) for text in WALL]
    (folder / "j" / "0.json").write_text("".join(f"{line}\n" for line in lines))
    (folder / "c" / "0.csv").write_text("".join(f"{text}\n" for text in WALL))


def streams_over(folder: Path) -> list[Stream]:
    def of_files(name: str, format: str, schema: str, path: str = "", **more: Any) -> Stream:
        options = {"path": str(folder / (path or name))}
        return Stream(name=name, format=format, schema=schema, options=options, **more)

    timed: dict[str, Any] = {"event_time": "ts", "quiet_s": None}
    return [
        of_files("s", "parquet", "ts TIMESTAMP, n TIMESTAMP_NTZ", **timed),
        of_files("w", "parquet", "ts TIMESTAMP_NTZ", **timed),
        of_files("j", "json", "ts TIMESTAMP, a ARRAY<TIMESTAMP>, n TIMESTAMP_NTZ"),
        of_files("c", "csv", "ts TIMESTAMP"),
        of_files("c2", "csv", "ts TIMESTAMP", "c", ingest="spark"),
    ]


def python_rows(first: int) -> list[dict[str, Any]]:
    walls = [datetime.fromisoformat(text) for text in WALL]
    return [{"ts": wall, "a": [wall, wall.replace(tzinfo=UTC)]} for wall in walls][first:]


def lines_of(frame: DataFrame) -> Counter[str]:
    """Return rows as JSON text, with all six digits of the microseconds."""
    pattern = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"
    options = {"timestampFormat": f"{pattern}XXX", "timestampNTZFormat": pattern}
    rows = frame.select(F.to_json(F.struct("*"), options)).collect()
    return Counter(text for (text,) in rows)


FEW = ("fields", "of_json", "of_python", "to_csv", "days", "wall", "sessions")
"""Queries that could still go wrong in other zones: with half hours, or with hours behind UTC.
St. John's has both, and its clocks change within the hours of New York's changes."""


@pytest.mark.parametrize(
    ("zone", "names"),
    [
        ("Europe/Berlin", (*STATELESS, *WINDOWS)),
        ("America/St_Johns", FEW),
        pytest.param("America/New_York", FEW, marks=pytest.mark.long),
        pytest.param("Asia/Kolkata", FEW, marks=pytest.mark.long),
    ],
)
def test_results_are_those_of_batch_in_the_same_zone(
    spark: SparkSession, tmp_path: Path, zone: str, names: Sequence[str]
) -> None:
    write_sources(tmp_path)
    session = in_zone(spark, zone)
    gate = Headgate(session, state=tmp_path / "state", rehearsal_s=0)
    session.conf.set("spark.sql.session.timeZone", "Pacific/Apia")  # too late to have an effect
    texts = {name: STATELESS[name] if name in STATELESS else WINDOWS[name][0] for name in names}
    streams = [
        stream
        for stream in streams_over(tmp_path)
        if any(f"FROM {stream.name} " in f"{sql} " for sql in texts.values())
    ]
    for stream in streams:
        gate.add_stream(stream)
    schema = "ts TIMESTAMP, a ARRAY<TIMESTAMP>"
    gate.add_stream(Stream(name="p", format="python", schema=schema), rows=python_rows)
    for name, sql in texts.items():
        kind: Any = name.removeprefix("to_") if name.startswith("to_") else "parquet"
        query = Query(name=name, sql=sql, query_class="default", sink=Sink(format=kind))
        gate.add_query(query)
        if name in ("fields", "wall"):
            # A query with an `apply` function always runs as a job.
            gate.add_query(replace(query, name=f"{name}_job", apply=lambda frame: frame))
    gate.start()
    of_wall = [name for name in texts if " FROM s" not in texts[name]]
    consume(gate, len(WALL))
    consume(gate, len(INSTANTS), but=(*of_wall, *(f"{name}_job" for name in of_wall)))
    past = gate.sql("SELECT any_value(current_timezone()) FROM s").collect()
    report = gate.stop()
    assert report is not None
    assert not report.errors
    assert past[0][0] == zone
    with batch_session(spark, zone) as batch:
        for stream in streams:
            reader = batch.read.format(stream.format).schema(str(stream.schema))
            reader.load(stream.options["path"]).createOrReplaceTempView(stream.name)
        batch.sql("SELECT ts, a FROM j").createOrReplaceTempView("p")
        results = tmp_path / "state" / "results"
        for name in names:
            if name in WINDOWS:
                closed = "ts < '2024-12-31'"
                sql = WINDOWS[name][1].replace(
                    "FROM s", f"FROM (SELECT * FROM s WHERE {closed}) AS s"
                )
                sql = sql.replace("FROM w", f"FROM (SELECT * FROM w WHERE {closed}) AS w")
                check(batch, results, name, batch.sql(sql))
            else:
                check(batch, results, name, batch.sql(STATELESS[name]))


def check(batch: SparkSession, results: Path, name: str, expected: DataFrame) -> None:
    lines = lines_of(expected)
    if name.startswith("to_"):
        format = name.removeprefix("to_")
        reader = batch.read.format(format).schema(expected.schema)
        assert lines_of(reader.load(str(results / name))) == lines, name
        return
    for folder in (results / name, results / f"{name}_job"):
        if folder.exists():
            read = batch.read.parquet(str(folder))
            assert read.schema.simpleString() == expected.schema.simpleString()
            assert lines_of(read) == lines, folder.name


def test_a_state_directory_keeps_the_zone_of_its_first_start(
    spark: SparkSession, tmp_path: Path
) -> None:
    def gate_in(zone: str) -> Headgate:
        gate = Headgate(in_zone(spark, zone), state=tmp_path / "state", rehearsal_s=0)
        stream = Stream(name="s", format="python", schema="id INT")
        gate.add_stream(stream, rows=lambda first: [])
        gate.add_query(Query(name="q", sql="SELECT id FROM s", query_class="default"))
        return gate

    for zone in ("Etc/UTC", "GMT"):  # two names of one zone
        gate = gate_in(zone)
        gate.start()
        gate.stop()
    gate = gate_in("Europe/Berlin")
    with pytest.raises(RecoveryRefused) as refusal:
        gate.start()
    gate.stop()
    text = str(refusal.value)
    assert "expected the time zone in which its queries began, Etc/UTC," in text
    assert "found a Spark session in Europe/Berlin." in text
    assert "Fix: set spark.sql.session.timeZone to Etc/UTC," in text


def test_a_journal_of_version_3_was_in_utc(tmp_path: Path) -> None:
    Journal(tmp_path).close()
    with closing(sqlite3.connect(tmp_path / "journal.db")) as db, db:
        db.execute("UPDATE about SET value = '3' WHERE key = 'version'")
    journal = Journal(tmp_path)
    assert journal.remember_zone("Asia/Kolkata") == "UTC"
    assert dict(journal.read("SELECT * FROM about", ()))["version"] == str(VERSION)
    journal.close()
    with closing(sqlite3.connect(tmp_path / "journal.db")) as db, db:
        db.execute("UPDATE about SET value = '2' WHERE key = 'version'")
    with pytest.raises(RecoveryRefused, match=f"a journal of version {VERSION}"):
        Journal(tmp_path)


def test_instants_and_wall_clock_times_are_not_ordered_together(
    spark: SparkSession, tmp_path: Path
) -> None:
    sql = "SELECT a.ts FROM a [RANGE 1 HOUR] JOIN b [RANGE 1 HOUR] ON a.k = b.k"
    for zone, refused in (("Europe/Berlin", True), ("UTC", False)):
        gate = Headgate(in_zone(spark, zone), state=tmp_path / "state", rehearsal_s=0)
        for name, kind in (("a", "TIMESTAMP"), ("b", "TIMESTAMP_NTZ")):
            stream = Stream(name=name, format="python", schema=f"k INT, ts {kind}", event_time="ts")
            gate.add_stream(stream, rows=lambda first: [])
        query = Query(name="q", sql=sql, query_class="default")
        if refused:
            with pytest.raises(QueryRefused, match="the event_time of one is a TIMESTAMP and"):
                gate.add_query(query)
        else:
            gate.add_query(query)
        gate.stop()
