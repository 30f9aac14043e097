"""Every sink on Spark: its rows are the independent answer, also after a crash anywhere."""

import json
import logging
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from independent import Rows, committed_rows, expected_rows
from pyspark.sql import SparkSession
from sources import consume, gate_over, write_readings

from headgate import Headgate, Query, Sink
from headgate.errors import QueryRefused

pytestmark = [pytest.mark.spark, pytest.mark.slow]

HOT = "SELECT location, temperature FROM sensors WHERE temperature > 35"
SAID = "SELECT location, temperature, concat(location, '; \"so\"') AS said FROM sensors"
POINTS = [
    *("result written", "results written", "step journalled", "result visible"),
    *("delivery begun", "result delivered"),
]


DERBY = "jdbc:derby:memory:nobody"


class Receiver:
    """Keeps what was delivered, as somebody outside the process would."""

    def __init__(self) -> None:
        self.deliveries: list[tuple[str, Rows]] = []

    def __call__(self, table: pa.Table, key: str) -> None:
        self.deliveries.append((key, rows_of(table)))

    @property
    def keys(self) -> list[str]:
        return [key for key, _ in self.deliveries]

    def all(self) -> Rows:
        return sum((rows for _, rows in self.deliveries), Counter())

    def once(self) -> Rows:
        """What was delivered, each key once; the same key never stands for other rows."""
        known: dict[str, Rows] = {}
        for key, rows in self.deliveries:
            assert known.setdefault(key, rows) == rows
        return sum(known.values(), Counter())


class Crash(Exception):
    """The process is gone: from here on nothing of it happens any more."""


class CrashAt:
    """Raises at the second time a point is reached, and at every point ever after."""

    def __init__(self, point: str) -> None:
        self._point, self._left = point, 2
        self.dead = threading.Event()

    def __call__(self, point: str) -> None:
        self._left -= point == self._point
        if self.dead.is_set() or not self._left:
            self.dead.set()
            raise Crash(point)


def rows_of(table: pa.Table) -> Rows:
    return Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))


def gate_with(
    spark: SparkSession,
    folder: Path,
    sinks: Mapping[str, Sink],
    *,
    sql: str = HOT,
    deliver: Callable[[Any, str], object] | None = None,
    **options: Any,
) -> Headgate:
    """Gives a Headgate that runs one text for every sink."""
    gate = gate_over(spark, folder, {}, **options)
    for name, sink in sinks.items():
        query = Query(name=name, sql=sql, query_class="H", sink=sink)
        gate.add_query(query, deliver=deliver if sink.format == "callback" else None)
    return gate


def run(gate: Headgate, offered: int) -> None:
    gate.start()
    consume(gate, offered)
    gate.stop()


@pytest.fixture
def database(spark: SparkSession, tmp_path: Path) -> str:
    """Gives the URL of an empty database in memory."""
    jvm: Any = spark.sparkContext._jvm
    jvm.java.lang.System.setProperty("derby.stream.error.file", str(tmp_path / "derby.log"))
    return f"jdbc:derby:memory:{tmp_path.name};create=true"


def execute(spark: SparkSession, url: str, *statements: str) -> None:
    jvm: Any = spark.sparkContext._jvm
    connection = jvm.java.sql.DriverManager.getConnection(url)
    for statement in statements:
        connection.createStatement().execute(statement)
    connection.close()


def test_csv_has_a_header_and_a_separator_if_asked(spark: SparkSession, tmp_path: Path) -> None:
    offered = write_readings(tmp_path / "source", files=3, rows=40)
    sinks = {
        "plain": Sink(format="csv"),
        "headed": Sink(format="csv", options={"header": "true", "sep": ";"}),
    }
    run(gate_with(spark, tmp_path, sinks, sql=SAID), offered)
    expected = expected_rows(SAID, tmp_path / "source")
    for name, header, separator in (("plain", False, ","), ("headed", True, ";")):
        folder = tmp_path / "state/results" / name
        (first, *_) = sorted(folder.glob("*.csv"))
        line = first.read_text().splitlines()[0]
        assert (line == separator.join(["location", "temperature", "said"])) is header
        columns = "{location: 'VARCHAR', temperature: 'INT', said: 'VARCHAR'}"
        found = duckdb.sql(
            f"SELECT * FROM read_csv('{folder}/*.csv', header = {header}, delim = '{separator}',"
            f" quote = '\"', escape = '\\', columns = {columns}, strict_mode = false)"
        ).to_arrow_table()
        assert rows_of(found) == expected, name


def test_a_row_of_nothing_is_a_line_of_csv_too(spark: SparkSession, tmp_path: Path) -> None:
    offered = write_readings(tmp_path / "source", files=1, rows=30)
    sql = "SELECT CASE WHEN temperature > 35 THEN location END AS place FROM sensors"
    named = Sink(format="csv", options={"nullValue": "none"})
    run(
        gate_with(spark, tmp_path, {"places": Sink(format="csv"), "named": named}, sql=sql), offered
    )
    for name, nothing in (("places", '""'), ("named", "none")):
        (file,) = (tmp_path / "state/results" / name).glob("*.csv")
        rows = expected_rows(sql, tmp_path / "source").elements()
        assert Counter(file.read_text().splitlines()) == Counter(row[0] or nothing for row in rows)


def test_a_query_that_runs_whole_has_lines_too(spark: SparkSession, tmp_path: Path) -> None:
    offered = write_readings(tmp_path / "source", files=1, rows=30)
    sql = "SELECT explode(array(temperature, NULL)) AS `a b` FROM sensors"
    sinks = {"lines": Sink(format="json"), "csv": Sink(format="csv")}
    run(gate_with(spark, tmp_path, sinks, sql=sql), offered)
    unnested = "SELECT unnest([temperature, NULL]) FROM sensors"
    rows = expected_rows(unnested, tmp_path / "source")
    (file,) = (tmp_path / "state/results/lines").glob("*.json")
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert Counter((line.get("a b"),) for line in lines) == rows
    (file,) = (tmp_path / "state/results/csv").glob("*.csv")
    values = ('""' if value is None else str(value) for (value,) in rows.elements())
    assert Counter(file.read_text().splitlines()) == Counter(values)


def test_options_of_json_and_parquet_arrive(spark: SparkSession, tmp_path: Path) -> None:
    offered = write_readings(tmp_path / "source", files=2, rows=30)
    sql = "SELECT location, CAST(NULL AS INT) AS nothing FROM sensors"
    sinks = {
        "lines": Sink(format="json", options={"ignoreNullFields": "false"}),
        "files": Sink(options={"compression": "gzip"}),
    }
    run(gate_with(spark, tmp_path, sinks, sql=sql), offered)
    expected = expected_rows("SELECT location, NULL FROM sensors", tmp_path / "source")
    for name in sinks:
        assert committed_rows(tmp_path / "state/results" / name) == expected
    folder = tmp_path / "state/results/files"
    used = duckdb.sql(f"SELECT DISTINCT compression FROM parquet_metadata('{folder}/*.parquet')")
    assert used.fetchall() == [("GZIP",)]


@pytest.mark.parametrize("point", POINTS)
def test_after_a_crash_files_hold_all_once_and_deliveries_all_once_by_key(
    spark: SparkSession, tmp_path: Path, database: str, point: str
) -> None:
    offered = write_readings(tmp_path / "source", files=4, rows=50)
    execute(
        spark, database, "CREATE TABLE hot (headgate_key VARCHAR(99) PRIMARY KEY,"
        " location VARCHAR(99), temperature INT)",
    )  # fmt: skip
    options = {"url": database, "table": "hot", "key": "headgate_key"}
    sinks = {
        "parquet": Sink(),
        "json": Sink(format="json"),
        "csv": Sink(format="csv"),
        "callback": Sink(format="callback"),
        "jdbc": Sink(format="jdbc", options=options),
    }
    receiver, crash = Receiver(), CrashAt(point)
    settings: dict[str, Any] = {"deliver": receiver, "train_tuples": 1, "workers": 1}
    gate = gate_with(spark, tmp_path, sinks, reached=crash, **settings)
    gate.start()
    try:
        assert crash.dead.wait(60)
    finally:
        gate.stop()
    run(gate_with(spark, tmp_path, sinks, **settings), offered)
    expected = expected_rows(HOT, tmp_path / "source")
    for name in ("parquet", "json"):
        assert committed_rows(tmp_path / "state/results" / name) == expected
    lines = [
        line
        for file in (tmp_path / "state/results/csv").glob("*.csv")
        for line in file.read_text().splitlines()
    ]
    pairs = expected.elements()
    assert Counter(lines) == Counter(f"{place},{heat}" for place, heat in pairs)
    assert receiver.once() == expected
    assert receiver.all() >= expected
    table = spark.read.jdbc(database, "hot").drop("HEADGATE_KEY")
    assert Counter(tuple(row) for row in table.collect()) == expected
    assert not list((tmp_path / "state/outbox").glob("*/*.parquet"))


def test_a_delivery_that_a_crash_made_uncertain_comes_again_with_its_key(
    spark: SparkSession, tmp_path: Path
) -> None:
    offered = write_readings(tmp_path / "source", files=2, rows=50)
    receiver, crash = Receiver(), CrashAt("result delivered")
    sinks = {"hot": Sink(format="callback")}
    gate = gate_with(spark, tmp_path, sinks, deliver=receiver, reached=crash, train_tuples=1)
    gate.start()
    assert crash.dead.wait(60)
    gate.stop()
    run(gate_with(spark, tmp_path, sinks, deliver=receiver, train_tuples=1), offered)
    assert receiver.keys == ["hot/0-0", "hot/1-1", "hot/1-1"]
    assert receiver.once() == expected_rows(HOT, tmp_path / "source")


def test_a_receiver_that_is_away_delays_its_own_results_only_and_loses_none(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    offered = write_readings(tmp_path / "source", files=3, rows=50)
    receiver, here, complete = Receiver(), threading.Event(), threading.Event()

    def deliver(table: pa.Table, key: str) -> None:
        if not here.is_set():
            raise ConnectionError("the database is away")
        receiver(table, key)
        if len(receiver.keys) == 3:
            complete.set()

    sinks = {"hot": Sink(format="callback"), "files": Sink()}
    gate = gate_with(spark, tmp_path, sinks, deliver=deliver, train_tuples=1)
    gate.start()
    consume(gate, offered)
    expected = expected_rows(HOT, tmp_path / "source")
    assert committed_rows(tmp_path / "state/results/files") == expected
    assert gate.query("hot").exception() is None
    assert not receiver.keys
    here.set()
    assert complete.wait(30)
    gate.stop()
    assert receiver.keys == ["hot/0-0", "hot/1-1", "hot/2-2"]
    assert receiver.all() == expected
    told = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert [line for line in told if "its results wait in the outbox" in line] == [
        "query 'hot': its results wait in the outbox, the callback sink does not take them:"
        " ConnectionError: the database is away"
    ]


def test_a_receiver_that_hangs_holds_nobody_up(spark: SparkSession, tmp_path: Path) -> None:
    offered = write_readings(tmp_path / "source", files=2, rows=50)
    receiver, release = Receiver(), threading.Event()

    def deliver(table: pa.Table, key: str) -> None:
        assert release.wait(60)
        receiver(table, key)

    sinks = {"hot": Sink(format="callback"), "files": Sink()}
    gate = gate_with(spark, tmp_path, sinks, deliver=deliver, train_tuples=1, workers=1)
    gate.start()
    consume(gate, offered)
    assert not receiver.keys
    release.set()
    gate.stop()
    expected = expected_rows(HOT, tmp_path / "source")
    assert committed_rows(tmp_path / "state/results/files") == receiver.all() == expected


def test_what_has_not_arrived_at_the_end_is_delivered_by_the_next_start(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    offered = write_readings(tmp_path / "source", files=2, rows=50)
    sinks = {"hot": Sink(format="callback")}

    def away(table: pa.Table, key: str) -> None:
        raise ConnectionError("the database is away")

    run(gate_with(spark, tmp_path, sinks, deliver=away, train_tuples=1), offered)
    assert "query 'hot': 2 results have not arrived; the next start delivers them" in caplog.text
    receiver = Receiver()
    run(gate_with(spark, tmp_path, sinks, deliver=receiver), offered)
    assert receiver.keys == ["hot/0-0", "hot/1-1"]
    assert receiver.all() == expected_rows(HOT, tmp_path / "source")


def test_memory_keeps_the_newest_rows_and_counts_what_it_drops(
    spark: SparkSession, tmp_path: Path
) -> None:
    offered = write_readings(tmp_path / "source", files=4, rows=50)
    sql = "SELECT ts, location FROM sensors"
    sinks = {
        "all": Sink(format="memory"),
        "few": Sink(format="memory", options={"rows": "70"}),
    }
    gate = gate_with(spark, tmp_path, sinks, sql=sql, train_tuples=1)
    with pytest.raises(QueryRefused, match="that has started"):
        gate.query("all").rows()
    run(gate, offered)
    every = gate.query("all").rows()
    assert isinstance(every, pa.Table)
    expected = expected_rows("SELECT epoch_us(ts), location FROM sensors", tmp_path / "source")
    times = every["ts"].cast(pa.int64())
    assert rows_of(every.set_column(0, "ts", times)) == expected
    assert gate.query("all").rows_dropped == 0
    few = gate.query("few")
    assert few.rows().equals(every.slice(130))
    assert few.rows_dropped == 130


def test_the_console_shows_rows_behind_the_querys_name(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    offered = write_readings(tmp_path / "source", files=2, rows=50)
    run(gate_with(spark, tmp_path, {"hot": Sink(format="console")}), offered)
    lines = [
        line.removeprefix("hot: ")
        for line in capsys.readouterr().out.splitlines()
        if line.startswith("hot: ")
    ]
    shown = Counter(tuple(json.loads(line).values()) for line in lines)
    assert shown == expected_rows(HOT, tmp_path / "source")


def test_a_table_keeps_the_latest_row_of_every_key(
    spark: SparkSession, tmp_path: Path, database: str
) -> None:
    offered = write_readings(tmp_path / "source", files=3, rows=60)
    execute(
        spark, database,
        "CREATE TABLE latest (location VARCHAR(99) PRIMARY KEY, temperature INT, ts TIMESTAMP)",
    )  # fmt: skip
    options = {"url": database, "table": "latest", "key": "location"}
    sql = "SELECT ts, location, temperature FROM sensors"
    sinks = {"latest": Sink(format="jdbc", options=options)}
    run(gate_with(spark, tmp_path, sinks, sql=sql), offered)
    rows = spark.read.jdbc(database, "latest").select("LOCATION", "TEMPERATURE").collect()
    latest = "SELECT location, arg_max(temperature, ts) FROM sensors GROUP BY location"
    assert Counter(map(tuple, rows)) == expected_rows(latest, tmp_path / "source")


@pytest.mark.parametrize(
    ("sink", "deliver", "message"),
    [
        (Sink(format="callback"), None, "sink format callback has no function"),
        (Sink(), print, "sink format parquet takes no function"),
        (
            Sink(format="jdbc", options={"url": DERBY, "table": "t", "key": "place"}),
            None,
            "sink options.key 'place' is no column of it: it puts out location, temperature",
        ),
        (
            Sink(format="jdbc", options={"url": "jdbc:none:x", "table": "t", "key": "location"}),
            None,
            "sink options.url has no driver on the class path: No suitable driver",
        ),
        (
            Sink(format="kafka", options={"kafka.bootstrap.servers": "h:9092", "topic": "t"}),
            None,
            "add  spark.jars.packages: org.apache.spark:spark-sql-kafka-0-10_2.13:",
        ),
    ],
)
def test_a_sink_that_cannot_be_is_refused_when_the_query_comes(
    spark: SparkSession, tmp_path: Path, sink: Sink, deliver: Any, message: str
) -> None:
    write_readings(tmp_path / "source", files=1, rows=5)
    gate = gate_over(spark, tmp_path, {})
    query = Query(name="hot", sql=HOT, query_class="H", sink=sink)
    with pytest.raises(QueryRefused) as refused:
        gate.add_query(query, deliver=deliver)
    assert message in str(refused.value)
    assert str(refused.value).startswith("query 'hot': ")
    gate.stop()


def test_only_files_want_a_directory_of_their_own(spark: SparkSession, tmp_path: Path) -> None:
    write_readings(tmp_path / "source", files=1, rows=5)
    console = {"one": Sink(format="console"), "two": Sink(format="console")}
    gate = gate_with(spark, tmp_path, {**console, "a": Sink(path=str(tmp_path / "same"))})
    query = Query(name="b", sql=HOT, query_class="H", sink=Sink(path=str(tmp_path / "same")))
    with pytest.raises(QueryRefused, match="is also that of 'a'"):
        gate.add_query(query)
    gate.stop()
