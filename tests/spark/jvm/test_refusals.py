"""The answer to a user's mistake: query, clause, reason and fix."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate import Headgate, HeadgateError, Query, Sink, Stream
from headgate.errors import ConfigRefused, QueryRefused, RecoveryRefused, UnknownName

pytestmark = pytest.mark.spark


@pytest.fixture
def headgate(spark: SparkSession, tmp_path: Path) -> Headgate:
    gate = Headgate(spark, state=tmp_path / "state", classes={"H": 2, "N": 1}, rehearsal_s=0)
    gate.add_stream(_sensors(tmp_path))
    return gate


def _sensors(folder: Path, schema: str = "location STRING, temperature INT") -> Stream:
    source = folder / "source"
    source.mkdir(exist_ok=True)
    return Stream(name="sensors", format="parquet", options={"path": str(source)}, schema=schema)


def _refusal(headgate: Headgate, sql: str) -> str:
    with pytest.raises(HeadgateError) as refused:
        headgate.add_query(Query(name="late", sql=sql, query_class="H"))
    return str(refused.value)


@pytest.mark.parametrize(
    ("sql", "parts"),
    [
        (
            "SELECT location,\n temprature FROM sensors",
            ["query 'late', line 2: column `temprature` does not exist", "`temperature`"],
        ),
        (
            "SELECT risk(temperature) FROM sensors",
            ["query 'late', line 1: function `risk` does not exist", "register yours"],
        ),
        (
            "SELECT location FROM sensors; SELECT 1",
            ["query 'late', line 1, column 31: the text cannot be parsed", "write one statement"],
        ),
        ("DROP TABLE sensors", ["DropTable is not a SELECT", "change tables outside Headgate"]),
        ("INSERT INTO t SELECT * FROM sensors", ["InsertIntoStatement is not a SELECT"]),
        ("CREATE VIEW v AS SELECT * FROM sensors", ["is not a SELECT"]),
        ("SET spark.sql.ansi.enabled = false", ["is not a SELECT"]),
        ("SELEC location FROM sensors", ["cannot be parsed: Syntax error at or near 'SELEC'"]),
        ("SELECT * FROM sensors [NOW]", ["or near '['", "Fix: write a window behind a stream as"]),
        (
            "SELECT location FROM senors",
            ["table or stream `senors` does not exist", "Fix: write sensors"],
        ),
        ("SELECT 1", ["FROM names 0 streams"]),
        ("SELECT count(*) AS n FROM range(3)", ["FROM names 0 streams", "exactly one stream"]),
        (
            "SELECT location FROM sensors\nORDER BY location",
            ["query 'late', line 2: ORDER BY cannot run continuously", "no last row"],
        ),
        ("SELECT location FROM sensors LIMIT 3", ["LIMIT cannot run continuously"]),
        ("SELECT DISTINCT location FROM sensors", ["DISTINCT cannot run continuously"]),
        (
            "SELECT count(*) FROM sensors",
            ["GROUP BY or an aggregate cannot run continuously without a window", "[RANGE 60 S"],
        ),
        (
            "SELECT a.location FROM sensors a, sensors b",
            ["JOIN cannot run continuously without a win", "each stream"],
        ),
        (
            "SELECT location FROM sensors UNION ALL SELECT location FROM sensors",
            [
                "UNION is in the order of time, and stream 'sensors' has no event_time",
                "event_time:",
            ],
        ),
        ("SELECT sum(temperature) OVER () FROM sensors", ["OVER cannot run continuously without"]),
        (
            "SELECT count(*) AS n FROM sensors [RANGE 5 PARSECS]",
            ["query 'late', line 1: [RANGE 5 PARSECS] cannot be read", "[ROWS 100 SLIDE 10]"],
        ),
        (
            "SELECT count(*) AS n\nFROM sensors [RANGE 5 SECNDS]",
            [
                "line 2: [RANGE 5 SECNDS] cannot be read: there is no unit SECNDS",
                "[RANGE 5 SECONDS]",
            ],
        ),
        (
            "SELECT count(*) AS n FROM sensors [RANGE 5 SECONDS]",
            ["RANGE needs the time of a tuple", "event_time: ts, in stream 'sensors'"],
        ),
        (
            "SELECT count(*) AS n FROM sensors GROUP BY window(location, '5 seconds')",
            ["not the event_time of stream 'sensors'", "set event_time: location"],
        ),
        (
            "SELECT a.location FROM sensors [ROWS 5] a, sensors b WHERE a.location = b.location",
            ["FROM sensors has no window", "FROM sensors [RANGE 10 SECONDS]"],
        ),
        (
            "SELECT a.location FROM sensors [ROWS 5] a LEFT JOIN sensors [ROWS 5] b"
            " ON a.location = b.location",
            ["LeftOuter join is not possible over ROWS windows", "use RANGE"],
        ),
        (
            "SELECT location\nFROM sensors WITH ('__hg_input' = '5')",
            ["line 2: the option '__hg_input' is reserved", "leave it out"],
        ),
        (
            "SELECT a.location FROM sensors [ROWS 5] a,\nsensors WITH ('__HG_INPUT' = '0') b",
            ["line 2: the option '__hg_input' is reserved"],
        ),
        (
            "WITH sensors AS (SELECT * FROM sensors WHERE temperature > 3)\n"
            "SELECT count(*) AS n FROM sensors [ROWS 5]",
            ["line 2: the window after sensors follows the name of a common table", "inside"],
        ),
        ("SELECT tempo FROM sensors [ROWS 5]", ["column `tempo` does not exist in the stream"]),
        ("SELECT rand() AS r FROM sensors [ROWS 5]", ["Rand has no fixed answer"]),
        (
            "SELECT * FROM sensors WHERE temperature > (SELECT max(temperature) FROM sensors)",
            ["a subquery over a stream"],
        ),
        ("SELECT rand() AS r FROM sensors", ["Rand has no fixed answer"]),
        ("SELECT uuid() AS u FROM sensors", ["Uuid has no fixed answer"]),
        ("SELECT now() AS t FROM sensors", ["Now has no fixed answer", "own time column"]),
        ("SELECT current_date() AS t FROM sensors", ["CurrentDate has no fixed answer"]),
        (
            "SELECT location,\nTIMESTAMP 'Now' AS t FROM sensors",
            ["line 2: 'now' has no fixed answer", "own time column"],
        ),
        ("SELECT to_date('yesterday') AS d FROM sensors", ["'yesterday' has no fixed answer"]),
        (
            "SELECT * FROM sensors WHERE to_timestamp(location) > 'today'",
            ["'today' has no fixed answer"],
        ),
        ("SELECT * FROM sensors TABLESAMPLE (10 PERCENT)", ["TABLESAMPLE has no fixed answer"]),
        ("SELECT location, location FROM sensors", ["column `location` comes out twice", "AS"]),
    ],
)
def test_a_mistake_is_answered_with_clause_reason_and_fix(
    headgate: Headgate, sql: str, parts: list[str]
) -> None:
    message = _refusal(headgate, sql)
    assert "late" in message
    assert "Fix: " in message
    assert "org.apache" not in message
    for part in parts:
        assert part in message


def test_a_refused_query_changes_nothing_for_the_next(headgate: Headgate) -> None:
    _refusal(headgate, "SELECT location FROM sensors LIMIT 3")
    headgate.add_query(Query(name="late", sql="SELECT location FROM sensors", query_class="H"))
    assert [query.name for query in headgate.queries] == ["late"]


@pytest.mark.parametrize("name", ["senors", "archive.sensors"])
def test_a_stream_with_a_window_that_does_not_exist_is_named(headgate: Headgate, name: str) -> None:
    query = Query(name="late", sql=f"SELECT count(*) FROM {name} [ROWS 5]", query_class="H")
    message = f"query 'late': there is no stream '{name}'.*'sensors'"
    with pytest.raises(UnknownName, match=message):
        headgate.add_query(query)


def test_a_name_is_given_once(headgate: Headgate) -> None:
    query = Query(name="late", sql="SELECT location FROM sensors", query_class="H")
    headgate.add_query(query)
    with pytest.raises(ConfigRefused, match=r"query 'late': name .* another query has it"):
        headgate.add_query(query)


def test_a_class_that_does_not_exist_is_named_with_the_nearest(headgate: Headgate) -> None:
    query = Query(name="late", sql="SELECT location FROM sensors", query_class="h")
    with pytest.raises(UnknownName, match=r"query 'late': there is no class 'h'.*Known: H, N"):
        headgate.add_query(query)


def test_two_queries_with_one_sink_are_refused(headgate: Headgate, tmp_path: Path) -> None:
    sink = Sink(path=str(tmp_path / "results"))
    sql = "SELECT location FROM sensors"
    headgate.add_query(Query(name="first", sql=sql, query_class="H", sink=sink))
    with pytest.raises(QueryRefused, match="query 'late': sink is also that of 'first'"):
        headgate.add_query(Query(name="late", sql=sql, query_class="H", sink=sink))


def test_a_weight_below_zero_is_refused() -> None:
    with pytest.raises(
        QueryRefused, match=r"query 'late': weight is -1.\nFix: give a finite weight"
    ):
        Query(name="late", sql="SELECT location FROM sensors", query_class="H", weight=-1)


def test_a_missing_directory_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    gate = Headgate(spark, state=tmp_path / "state")
    missing = tmp_path / "nowhere"
    stream = Stream(
        name="sensors", format="parquet", options={"path": str(missing)}, schema="location STRING"
    )
    with pytest.raises(ConfigRefused, match=r"stream 'sensors': source .*nowhere"):
        gate.add_stream(stream)


def test_an_unknown_format_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    gate = Headgate(spark, state=tmp_path / "state")
    with pytest.raises(ConfigRefused, match="stream 'sensors': source is 'kafak'"):
        gate.add_stream(Stream(name="sensors", format="kafak"))


def test_a_time_column_must_be_a_timestamp(spark: SparkSession, tmp_path: Path) -> None:
    gate = Headgate(spark, state=tmp_path / "state")
    sensors = _sensors(tmp_path)
    stream = Stream(
        name="sensors",
        format="parquet",
        options=sensors.options,
        schema=sensors.schema,
        arrival_time="location",
    )
    with pytest.raises(ConfigRefused, match="arrival_time is 'location', but must be a TIMESTAMP"):
        gate.add_stream(stream)


def test_the_name_that_the_log_uses_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    gate = Headgate(spark, state=tmp_path / "state")
    with pytest.raises(ConfigRefused, match="stream 'sensors': schema is '_arrived_at_s'"):
        gate.add_stream(_sensors(tmp_path, "location STRING, _arrived_at_s DOUBLE"))


def test_a_stream_whose_schema_changed_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    _run_once(spark, tmp_path, "location STRING, temperature INT", "SELECT location FROM sensors")
    with pytest.raises(RecoveryRefused) as refused:
        _run_once(spark, tmp_path, "location STRING, heat INT", "SELECT location FROM sensors")
    message = str(refused.value)
    assert "stream 'sensors': expected the schema of its log" in message
    assert "temperature:int" in message
    assert "heat:int" in message
    assert "Fix: restore the schema" in message


def test_a_query_whose_text_changed_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    schema = "location STRING, temperature INT"
    _run_once(spark, tmp_path, schema, "SELECT location FROM sensors")
    with pytest.raises(RecoveryRefused, match="query 'late': expected the text of the last run"):
        _run_once(spark, tmp_path, schema, "SELECT temperature FROM sensors")


def test_a_second_instance_on_one_state_directory_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    schema = "location STRING, temperature INT"
    first = _start(spark, tmp_path, schema, "SELECT location FROM sensors")
    try:
        with pytest.raises(RecoveryRefused, match="found another one in this process"):
            _start(spark, tmp_path, schema, "SELECT location FROM sensors")
    finally:
        first.stop()


def _run_once(spark: SparkSession, folder: Path, schema: str, sql: str) -> None:
    _start(spark, folder, schema, sql).stop()


def _start(spark: SparkSession, folder: Path, schema: str, sql: str) -> Headgate:
    gate = Headgate(spark, state=folder / "state", classes={"H": 1}, rehearsal_s=0)
    gate.add_stream(_sensors(folder, schema))
    gate.add_query(Query(name="late", sql=sql, query_class="H"))
    gate.start()
    return gate
