"""A query over a view answers as if the text of the view stood in its place."""

from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pytest
from independent import Rows, committed_rows, rows_of
from kit.streams import file_stream
from pyspark.sql import SparkSession
from sources import balanced, until, write_readings

from headgate import Headgate, Query, Sink, View
from headgate.errors import ConfigRefused, HeadgateError
from headgate.model.events import NetworkChanged
from headgate.model.network.network import Network
from headgate.workloads.testbeds.forest import SCHEMA

pytestmark = pytest.mark.spark

ROWS = 60
WARM = "SELECT location, temperature AS t, humidity, ts FROM sensors WHERE temperature > 15"
EARLY = "ts < TIMESTAMP'1970-01-01 00:00:14'"
"""After this time the view `hot` gets no more tuples, and its windows must close all the same."""

VIEWS = (
    View(name="warm", event_time="ts", sql=WARM),
    View(name="hot", event_time="ts", sql=f"SELECT * FROM warm WHERE t > 30 AND {EARLY}"),
    View(
        name="due", event_time="due", lateness_s=1,
        sql="SELECT location, ts + INTERVAL 1 HOUR AS due FROM sensors WHERE humidity < 70",
    ),
    View(
        name="halves", event_time="until",
        sql="SELECT location, count(*) AS n, max(t) AS top, window.end AS until FROM warm"
        " [RANGE 500 MILLISECONDS] GROUP BY location",
    ),
    View(
        name="pairs", event_time="ts", lateness_s=1,
        sql="SELECT a.location, a.ts, b.humidity FROM warm [RANGE 1 SECOND] a"
        " JOIN alarms [RANGE 1 SECOND] b ON a.location = b.location",
    ),
    View(
        name="parts", event_time="ts",
        sql="SELECT ts, explode(array(temperature, humidity)) AS part FROM sensors",
    ),
    View(name="plain", sql="SELECT location, humidity AS h FROM sensors WHERE temperature > 15"),
)  # fmt: skip

OVER = "[RANGE 2 SECONDS SLIDE 1 SECOND]"
GROUPED = "location, count(*) AS n, window.end AS e"
TWINS = {
    "stateless": (
        "SELECT location, t + 1 AS more FROM warm WHERE humidity < 50",
        "SELECT location, temperature + 1 AS more FROM sensors"
        " WHERE temperature > 15 AND humidity < 50",
    ),
    "through_two": (
        "SELECT location, ts FROM hot WHERE humidity > 10",
        f"SELECT location, ts FROM sensors WHERE temperature > 30 AND humidity > 10 AND {EARLY}",
    ),
    "windows": (
        f"SELECT {GROUPED} FROM warm {OVER} GROUP BY location",
        f"SELECT {GROUPED} FROM sensors {OVER} WHERE temperature > 15 GROUP BY location",
    ),
    "windows_through_two": (
        f"SELECT {GROUPED} FROM hot {OVER} GROUP BY location",
        f"SELECT {GROUPED} FROM sensors {OVER} WHERE temperature > 30 AND {EARLY}"
        " GROUP BY location",
    ),
    "sessions": (
        "SELECT location, count(*) AS n FROM warm"
        " GROUP BY location, session_window(ts, '300 milliseconds')",
        "SELECT location, count(*) AS n FROM sensors WHERE temperature > 15"
        " GROUP BY location, session_window(ts, '300 milliseconds')",
    ),
    "joined": (
        "SELECT a.location, a.ts, b.ts AS other FROM warm [RANGE 1 SECOND] a"
        " JOIN alarms [RANGE 1 SECOND] b ON a.location = b.location",
        "SELECT a.location, a.ts, b.ts AS other FROM sensors [RANGE 1 SECOND] a"
        " JOIN alarms [RANGE 1 SECOND] b ON a.location = b.location WHERE a.temperature > 15",
    ),
    "outer": (
        "SELECT a.location, a.ts, b.ts AS other FROM warm [RANGE 1 SECOND] a"
        " LEFT JOIN hot [RANGE 1 SECOND] b ON a.location = b.location AND a.humidity < b.humidity",
        "SELECT a.location, a.ts, b.ts AS other FROM"
        " (SELECT * FROM sensors [RANGE 1 SECOND] WHERE temperature > 15) a"
        f" LEFT JOIN (SELECT * FROM sensors [RANGE 1 SECOND] WHERE temperature > 30 AND {EARLY}) b"
        " ON a.location = b.location AND a.humidity < b.humidity",
    ),
    "united": (
        "SELECT ts, location FROM hot UNION ALL SELECT ts, location FROM alarms",
        f"SELECT ts, location FROM sensors WHERE temperature > 30 AND {EARLY}"
        " UNION ALL SELECT ts, location FROM alarms",
    ),
}
"""Queries over views, and equivalent queries without views."""

SECOND = 1_000_000


def _windows(relation: str, size: int, slide: int, upto: str) -> str:
    ends = f"unnest(range(us - us % {slide} + {slide}, us + {size} + 1, {slide})) AS e"
    return f"(SELECT * FROM (SELECT *, {ends} FROM {relation}) WHERE e <= {upto})"


CHECKED = {
    "by_own_time": (
        f"SELECT {GROUPED} FROM due {OVER} GROUP BY location",
        "SELECT location, count(*), make_timestamptz(e) FROM"
        f" {_windows('due', 2 * SECOND, SECOND, '(SELECT max(top) FROM due)')}"
        " GROUP BY location, e",
    ),
    "windows_of_windows": (
        "SELECT location, sum(n) AS total, max(top) AS top, window.end AS e"
        " FROM halves [RANGE 2 SECONDS] GROUP BY location",
        "SELECT location, sum(n)::BIGINT, max(top), make_timestamptz(e) FROM"
        f" {_windows('halves', 2 * SECOND, 2 * SECOND, '@upto')} GROUP BY location, e",
    ),
    "windows_of_pairs": (
        f"SELECT {GROUPED} FROM pairs [RANGE 1 SECOND] GROUP BY location",
        "SELECT location, count(*), make_timestamptz(e) FROM"
        f" {_windows('pairs', SECOND, SECOND, '@both - 1000000')} GROUP BY location, e",
    ),
    "windows_of_parts": (
        "SELECT sum(part) AS total, count(*) AS n, window.end AS e FROM parts [RANGE 1 SECOND]",
        "SELECT sum(part), count(*), make_timestamptz(e) FROM"
        f" {_windows('parts', SECOND, SECOND, '@upto')} GROUP BY e",
    ),
    "by_number": (
        "SELECT count(*) AS n, min(h) AS least, max(location) AS last, window.end AS e"
        " FROM plain [ROWS 7]",
        "SELECT count(*), min(humidity), max(location), p // 7 * 7 + 7 FROM (SELECT *,"
        " row_number() OVER (ORDER BY n) - 1 AS p FROM all_sensors WHERE temperature > 15)"
        " GROUP BY p // 7 HAVING count(*) = 7",
    ),
}
"""Queries over views, and equivalent queries for DuckDB. @upto is the watermark of `sensors`, @both
the lower watermark of both streams."""

TABLES = (
    "CREATE TABLE all_{name} AS SELECT * EXCLUDE (file_row_number), epoch_us(ts) AS us,"
    " row_number() OVER (ORDER BY filename, file_row_number) - 1 AS n FROM"
    " read_parquet('{folder}/{name}/*.parquet', filename = true, file_row_number = true)",
    "CREATE TABLE {name} AS SELECT * EXCLUDE (top) FROM (SELECT *, max(us) OVER (ORDER BY n ROWS"
    " BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS top FROM all_{name})"
    " WHERE top IS NULL OR us >= top - 1000000",
)
DERIVED = (
    "CREATE TABLE due AS SELECT * FROM (SELECT location, us + 3600000000 AS us, n, max(us) OVER"
    " (ORDER BY n ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) + 3599000000 AS before,"
    " max(us) OVER (ORDER BY n) + 3599000000 AS top FROM all_sensors WHERE humidity < 70)"
    " WHERE before IS NULL OR us >= before",
    "CREATE TABLE halves AS SELECT location, count(*) AS n, max(temperature) AS top, e AS us FROM"
    f" {_windows('sensors', SECOND // 2, SECOND // 2, '@upto')} WHERE temperature > 15"
    " GROUP BY location, e",
    "CREATE TABLE pairs AS SELECT a.location, a.us, b.humidity FROM sensors a JOIN alarms b"
    " ON a.location = b.location AND abs(a.us - b.us) <= 1000000 WHERE a.temperature > 15",
    "CREATE TABLE parts AS SELECT us, unnest([temperature, humidity]) AS part FROM all_sensors s"
    " WHERE us >= coalesce((SELECT max(us) FROM all_sensors f WHERE f.filename < s.filename), 0)"
    " - 1000000",
)


def _answers(folder: Path) -> dict[str, Rows]:
    """Return DuckDB's answers over the files of the source."""
    with duckdb.connect() as db:
        db.execute("SET TimeZone = 'UTC'")
        for name in ("sensors", "alarms"):
            for text in TABLES:
                db.execute(text.format(name=name, folder=folder))
        ((upto,),) = db.sql("SELECT max(us) - 1000000 FROM sensors").fetchall()
        ((other,),) = db.sql("SELECT max(us) - 1000000 FROM alarms").fetchall()
        marks = {"@upto": str(upto), "@both": str(min(upto, other))}

        def with_marks(text: str) -> str:
            for mark, value in marks.items():
                text = text.replace(mark, value)
            return text

        for text in DERIVED:
            db.execute(with_marks(text))
        return {name: rows_of(db, with_marks(oracle)) for name, (_, oracle) in CHECKED.items()}


def _gate(spark: SparkSession, folder: Path, **options: Any) -> Headgate:
    settings = {"state": folder / "state", "classes": {"H": 6, "C": 3, "N": 1}, "rehearsal_s": 0}
    gate = Headgate(spark, **{**settings, **options})
    for name in ("sensors", "alarms"):
        gate.add_stream(file_stream(name, folder / name, SCHEMA, lateness_s=1))
    return gate


def _write(folder: Path, first_file: int, files: int) -> int:
    for seed, name in enumerate(("sensors", "alarms")):
        write_readings(folder / name, files, ROWS, seed, first_file + 10, late_s=3)
    return (first_file + files) * ROWS


def _whole(spark: SparkSession, folder: Path, **options: Any) -> Headgate:
    gate = _gate(spark, folder, **options)
    for view in VIEWS:
        gate.add_view(view)
    for number, (name, (text, twin)) in enumerate(TWINS.items()):
        gate.add_query(Query(name=name, sql=text, query_class="HCN"[number % 3]))
        gate.add_query(Query(name=f"{name}_twin", sql=twin, query_class="N"))
    for name, (text, _) in CHECKED.items():
        gate.add_query(Query(name=name, sql=text, query_class="C"))
    return gate


def _check(gate: Headgate, folder: Path) -> None:
    results = folder / "state" / "results"
    for name in TWINS:
        rows, twin = committed_rows(results / name), committed_rows(results / f"{name}_twin")
        assert rows == twin, (name, rows - twin, twin - rows)
        assert rows, name
    for name, expected in _answers(folder).items():
        rows = committed_rows(results / name)
        assert rows == expected, (name, rows - expected, expected - rows)
        assert rows, name
    balanced(gate)


def test_queries_over_views_answer_like_queries_without_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    offered = _write(tmp_path, 0, 7)
    gate = _whole(spark, tmp_path, train_tuples=2 * ROWS)
    gate.start()
    until(lambda: gate.totals()["stateless_twin"][0] == offered, gate)
    until(lambda: gate.totals()["joined_twin"][0] == 2 * offered, gate)
    assert gate.drain(90)
    report = gate.stop()
    assert report is not None
    assert not report.errors
    _check(gate, tmp_path)


REFUSED: dict[str, tuple[Query | View, str]] = {
    "a stream's name twice": (
        View(name="warm", sql="SELECT 1 AS a FROM sensors"),
        "query 'warm': sink.options.stream is 'warm', but must be unique: another stream has it.",
    ),
    "itself": (
        View(name="loop", sql="SELECT * FROM loop"),
        "query 'loop': FROM loop is the stream that it fills.",
    ),
    "an unknown stream": (
        View(name="lost", sql="SELECT * FROM nowhere"),
        "query 'lost', line 1: table or stream `nowhere` does not exist.",
    ),
    "no time": (
        View(name="timeless", sql="SELECT ts, location FROM sensors", event_time="location"),
        "query 'timeless': event_time 'location' is not a TIMESTAMP column of its results, which"
        " are ts timestamp, location string.",
    ),
    "windows without a time": (
        Query(name="q", sql="SELECT count(*) AS n FROM loud [RANGE 1 SECOND]", query_class="N"),
        "query 'q', line 1: RANGE needs the time of a tuple, and stream 'loud' has no event_time.",
    ),
    "the order of windows": (
        Query(name="q", sql="SELECT count(*) AS n FROM counts [ROWS 3]", query_class="N"),
        "query 'q': ROWS counts tuples of 'counts', whose order query 'counts' does not define.",
    ),
    "the order of two streams": (
        Query(
            name="q", query_class="N",
            sql="SELECT a.ts FROM warm [ROWS 3] a JOIN sensors [ROWS 1] b ON a.ts = b.ts",
        ),
        "query 'q': ROWS counts tuples of 'warm', whose order among other streams depends on when"
        " query 'warm' runs.",
    ),
    "a cut": (
        Query(
            name="q", query_class="N", sink=Sink(format="stream"), cut=True,
            sql="SELECT upper(location) AS l FROM sensors WHERE temperature > 3",
        ),
        "query 'q': cut is not for a query that fills a stream.",
    ),
}  # fmt: skip


def test_views_come_and_go_with_their_readers(spark: SparkSession, tmp_path: Path) -> None:
    offered = _write(tmp_path, 0, 3)
    gate = _gate(spark, tmp_path)
    results = tmp_path / "state" / "results"
    gate.add_view(View(name="warm", sql=WARM, event_time="ts"))
    gate.add_query(Query(name="low", sql="SELECT ts FROM warm", query_class="N"))
    networks: list[Network] = []

    def hear(event: object) -> None:
        if isinstance(event, NetworkChanged):
            networks.append(event.network)

    gate.start(listeners=[hear])

    def classes() -> dict[str, str]:
        return {entry["query"]: entry["class"] for entry in gate.status()["queries"]}

    def unit() -> tuple[str, bool]:
        """Return the class of the view in the scheduler, and whether it may be shed."""
        paths = {path.query.name: path.query for path in networks[-1].paths}
        return paths["warm"].query_class, paths["warm"].allows_shedding

    until(lambda: gate.totals()["warm"][0] == offered, gate)
    assert classes()["warm"] == "N"
    assert "sink        stream warm" in gate.explanation("warm").text()
    assert "over warm" in gate.explanation("low").text()
    assert [*gate.drawing().streams] == gate.status()["streams"] == ["sensors", "alarms", "warm"]

    # A view has the class of its readers, through other views, too. It may shed if all of them may.
    gate.add(
        {
            "views": {
                "hottest": {"sql": "SELECT * FROM hotter WHERE t > 35"},
                "hotter": {"sql": "SELECT * FROM warm WHERE t > 30"},
            },
            "queries": {"high": {"sql": "SELECT * FROM hottest", "class": "H"}},
        }
    )
    until(lambda: bool(networks) and unit() == ("H", False), gate)
    assert classes() | {"low": "N"} == {**dict.fromkeys(classes(), "H"), "low": "N"}
    gate.set_query("high", query_class="N", weight=2)
    until(lambda: unit() == ("N", False), gate)
    gate.set_query("low", query_class="H")
    until(lambda: unit() == ("H", False), gate)
    assert classes() == {"low": "H", "warm": "H"} | dict.fromkeys(
        ("high", "hotter", "hottest"), "N"
    )
    with pytest.raises(ConfigRefused, match="view 'warm': class is 'H', but must be left out: a"):
        gate.set_query("warm", query_class="H")
    assert gate.set_query("warm", weight=3).weight == 3
    with pytest.raises(ConfigRefused, match="query 'warm': from must be left out: other queries"):
        gate.alter_query("warm", sql=WARM, start_from="oldest")
    gate.drop_query("low")
    gate.drop_query("high")
    until(lambda: unit() == ("N", True), gate)
    assert classes() == dict.fromkeys(("warm", "hotter", "hottest"), "N")

    # A view cannot be dropped before its readers.
    with pytest.raises(ConfigRefused, match="'warm': queries hotter must be dropped before it"):
        gate.drop_query("warm")
    with pytest.raises(ConfigRefused, match="the stream goes with query 'warm'"):
        gate.drop_stream("warm")
    circle = {name: {"sql": f"SELECT * FROM {base}"} for name, base in ("ab", "bc", "ca")}
    with pytest.raises(ConfigRefused, match="cycle is 'a -> c -> b -> a', but must be removed"):
        gate.add({"views": circle})
    gate.add_view(View(name="loud", sql="SELECT location FROM sensors"))
    gate.add_view(View(name="counts", sql="SELECT count(*) AS n FROM sensors [RANGE 1 SECOND]"))
    for name, (wanted, message) in REFUSED.items():
        with pytest.raises(HeadgateError) as refused:
            gate.add_view(wanted) if isinstance(wanted, View) else gate.add_query(wanted)
        assert str(refused.value).startswith(message), name

    # A new view may have the name of a dropped one, and other columns.
    for name in ("hottest", "hotter", "warm"):
        gate.drop_query(name)
    assert not (tmp_path / "state" / "log" / "warm").exists()
    again = "SELECT humidity AS h, ts FROM sensors WHERE temperature > 20"
    named = Sink(format="stream", options={"stream": "warm", "event_time": "ts"})
    text = "SELECT count(*) AS n, window.end AS e FROM warm [RANGE 1 SECOND]"
    twin = f"{text.replace('warm', 'sensors')} WHERE temperature > 20"
    new = (
        Query(name="filler", sql=again, query_class="C", sink=named),
        Query(name="new", sql=f"{text} GROUP BY window", query_class="N"),
        Query(name="new_twin", sql=f"{twin} GROUP BY window", query_class="N"),
    )
    for query in new:
        gate.add_query(query)
    assert classes()["filler"] == "C"
    assert gate.set_query("filler", query_class="H").query_class == classes()["filler"] == "H"
    assert gate.set_query("new", deadline_s=9.0).deadline_s == 9.0
    assert gate.set_query("new", deadline_s=None).deadline_s == 1.0  # the slide of its window
    _write(tmp_path, 3, 3)
    until(lambda: gate.totals()["new"][0] > 0, gate)
    gate.stop()

    # A second run continues where this one stopped, both the view and its readers.
    second = _gate(spark, tmp_path, train_tuples=ROWS, workers=1)
    for query in new:
        second.add_query(query)
    offered = _write(tmp_path, 6, 2)
    second.start()
    until(lambda: second.totals()["new_twin"][0] == offered, second)
    assert second.drain(60)
    second.stop()
    rows = committed_rows(results / "new")
    assert rows == committed_rows(results / "new_twin") != Counter()
    assert sum(n for n, _ in rows) > ROWS
    balanced(second)
