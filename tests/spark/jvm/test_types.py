"""Every Spark type on its way from source to sink: its values are unchanged, or it is refused."""

from collections import Counter
from dataclasses import dataclass, replace
from datetime import time, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from driver_reads import read_as_spark
from kit.streams import file_stream
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as spark_types
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType
from sources import consume

from headgate import Headgate, Query, Sink, Stream
from headgate.errors import ConfigRefused, QueryRefused
from headgate.model.network.network import Path as QueryPath
from headgate.spark.execution.warm_up import invent
from headgate.spark.jvm.arrow_frames import collected
from headgate.spark.jvm.session import own_session
from headgate.spark.jvm.types import NOT_WRITTEN, PASS, STAY, arrow_schema, part_of, refuse_outputs
from headgate.spark.sinks.kafka import records_of

pytestmark = [pytest.mark.spark, pytest.mark.slow]

VALUES = {
    "boolean": "true",
    "tinyint": "-128Y",
    "smallint": "32767S",
    "int": "-2147483648",
    "bigint": "9223372036854775807L",
    "float": "CAST('NaN' AS FLOAT)",
    "double": "-1.7976931348623157E308D",
    "decimal(38,10)": "CAST('-1234567890123456789012345678.0123456789' AS DECIMAL(38, 10))",
    "string": "'a \"b\" ü'",
    "string collate UTF8_LCASE": "'aB' COLLATE UTF8_LCASE",
    "binary": "X'00ff'",
    "date": "DATE'1500-02-28'",
    "timestamp": "TIMESTAMP'1500-01-01 00:00:00.000001Z'",
    "timestamp_ntz": "TIMESTAMP_NTZ'2024-03-31 02:30:00.123456'",
    "time(6)": "TIME'12:34:56.123456'",
    "time(3)": "CAST('23:59:59.999' AS TIME(3))",
    "interval day to second": "INTERVAL '-1 02:03:04.123456' DAY TO SECOND",
    "interval hour": "INTERVAL '25' HOUR",
    "void": "NULL",
    "variant": "parse_json('{\"a\": [1, 2.5, null]}')",
    "array<int>": "array(1, NULL)",
    "array<array<timestamp>>": "array(array(TIMESTAMP'2024-03-31 01:00:00.000001Z', NULL), NULL)",
    "array<interval minute to second>": "array(INTERVAL '3:04.5' MINUTE TO SECOND)",
    "array<variant>": "array(parse_json('1'), parse_json('{\"b\": {}}'))",
    "array<void>": "array(NULL)",
    "map<string,time(6)>": "map('a', TIME'00:00:00.000001', 'b', NULL)",
    "map<date,interval day>": "map(DATE'2024-01-01', INTERVAL '5' DAY)",
    "struct<a:variant,b:void,c:map<int,array<timestamp_ntz>>>": (
        "struct(parse_json('[]') AS a, NULL AS b,"
        " map(1, array(TIMESTAMP_NTZ'2024-10-27 02:30:00.5')) AS c)"
    ),
    "struct<a b:int>": "struct(1 AS `a b`)",
}
"""Types that pass, each with a value that is easily corrupted."""

COLUMNS = {f"c{number}": kind for number, kind in enumerate(VALUES)}


@dataclass(frozen=True)
class Refused:
    """A value whose type is refused, the type in the refusal, and a column that declares it."""

    value: str
    type: str
    declared: str | None = None


REFUSED = [
    Refused("INTERVAL '1-2' YEAR TO MONTH", "INTERVAL YEAR TO MONTH", "INTERVAL YEAR TO MONTH"),
    Refused("INTERVAL '2' MONTH", "INTERVAL MONTH", "ARRAY<INTERVAL MONTH>"),
    Refused("make_interval(1, 2, 3, 4, 5, 6, 7.5)", "INTERVAL", "INTERVAL"),
    Refused("array(INTERVAL '1' YEAR)", "INTERVAL YEAR", "MAP<STRING, INTERVAL YEAR>"),
    Refused("map('a', struct(make_interval(1) AS i))", "INTERVAL", "STRUCT<i: INTERVAL>"),
    Refused("st_geomfromwkb(X'0101000000000000000000F03F0000000000000040')", "GEOMETRY(0)",
            "GEOMETRY(0)"),
    Refused("st_geogfromwkb(X'0101000000000000000000F03F0000000000000040')", "GEOGRAPHY(4326)",
            "GEOGRAPHY(4326)"),
    Refused("CAST('2024-01-01' AS TIMESTAMP_NTZ(9))", "TIMESTAMP_NTZ(9)"),
    Refused("array()", "ARRAY<VOID>"),
    Refused("map()", "MAP<VOID,VOID>"),
    Refused("named_struct()", "STRUCT<>", "STRUCT<>"),
    Refused("struct(1 AS a, 2 AS A)", "STRUCT<A:INT,A:INT>", "STRUCT<a: INT, A: INT>"),
]  # fmt: skip


INSIDE = "CAST(make_interval(CAST(id AS INT)) AS STRING) AS y, size(array()) AS z"
INSIDE_AGGREGATES = (
    "CAST(max(make_ym_interval(CAST(id AS INT))) AS STRING) AS y, size(max_by(array(), id)) AS z"
)
"""A type that is refused as a result may be used inside a query."""


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    """Return a user's session with its own time zone and with types that are off by default."""
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "Asia/Kolkata")
    session.conf.set("spark.sql.timeType.enabled", "true")
    session.conf.set("spark.sql.timestampNanosTypes.enabled", "true")
    return session


def rows_of_all_types(session: SparkSession) -> DataFrame:
    """Return nine rows in two partitions. In every third row, all values of VALUES are NULL."""
    values = [
        f"CASE WHEN id % 3 < 2 THEN {value} END AS c{number}"
        for number, value in enumerate(VALUES.values())
    ]
    time = "timestamp_seconds(IF(id < 8, id * 2, 100)) AS ts"
    return session.range(0, 9, 1, 2).selectExpr("id", time, *values)


def lines_of(frame: DataFrame, format: str = "json") -> Counter[str]:
    """Return the rows of a frame as Spark writes them, every digit of a second included."""
    pattern = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"
    options = {"timestampFormat": f"{pattern}XXXXX", "timestampNTZFormat": pattern}
    to_text = F.to_json if format == "json" else F.to_csv
    row = F.struct(*(F.col(f"`{name}`") for name in frame.columns))
    return Counter(text for (text,) in frame.select(to_text(row, options)).collect())


@dataclass
class Run:
    """What a Headgate has committed for all types, and what it has refused."""

    session: SparkSession
    results: Path
    source: DataFrame
    texts: dict[str, str]
    lanes: dict[str, str]
    refusals: list[QueryRefused]


@pytest.fixture(scope="module")
def run(session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Run one Headgate over a stream of all types, with queries for every format and both lanes."""
    folder = tmp_path_factory.mktemp("types")
    source = rows_of_all_types(session)
    source.write.parquet(str(folder / "parts"))
    (folder / "s").mkdir()
    for number, file in enumerate(sorted((folder / "parts").glob("*.parquet"))):
        # One train is written by Spark, the other by pyarrow.
        file.rename(folder / "s" / f"{number}.parquet")
    gate = Headgate(session, state=folder / "state", rehearsal_s=0, lane="driver")
    gate.add_stream(file_stream("s", folder / "s", source._jdf.schema().toDDL()))
    texts = {}
    for format in ("parquet", "json", "csv"):
        skipped = NOT_WRITTEN.get(format, ())
        columns = [
            field.name
            for field in source.schema
            if field.name.startswith("c") and not part_of(field.dataType, skipped)
        ]
        plain = ", ".join(f"{name}, IF(id >= 0, {name}, {name}) AS x{name}" for name in columns)
        last = ", ".join(f"max_by({name}, IF(id % 3 = 2, -id, id)) AS {name}" for name in columns)
        texts[f"stateless_{format}"] = f"SELECT id, {plain}, {INSIDE} FROM s"
        texts[f"window_{format}"] = (
            f"SELECT max(window.end) AS e, {last}, {INSIDE_AGGREGATES} FROM s [RANGE 10 SECONDS]"
        )
    for name, sql in texts.items():
        sink = Sink(format=name.split("_")[1])
        query = Query(name=name, sql=sql, query_class="default", sink=sink)
        gate.add_query(query)
        if sink.format == "parquet":
            # A function over a DataFrame can only run as a job.
            gate.add_query(replace(query, name=f"{name}_job", apply=lambda frame: frame))
    gate.start()
    refusals = []
    for refused in REFUSED:
        query = Query(name="r", sql=f"SELECT {refused.value} AS c FROM s", query_class="default")
        with pytest.raises(QueryRefused) as refusal:
            gate.add_query(query)
        refusals.append(refusal.value)
    consume(gate, 9)
    lanes = {name: str(gate.explanation(name).lane) for name in texts}
    report = gate.stop()
    assert report is not None
    assert not report.errors
    return Run(session, folder / "state" / "results", source, texts, lanes, refusals)


def batch_of(run: Run, name: str) -> DataFrame:
    """Return Spark's batch answer to a query's text."""
    run.source.createOrReplaceTempView("s")
    sql = run.texts[name]
    if name.startswith("window"):
        sql = sql.replace(" [RANGE 10 SECONDS]", " WHERE id < 8 GROUP BY window(ts, '10 seconds')")
    return run.session.sql(sql)


@pytest.mark.parametrize("lane", ["", "_job"])
@pytest.mark.parametrize("text", ["stateless", "window"])
def test_every_type_keeps_its_values_in_parquet(run: Run, text: str, lane: str) -> None:
    batch = batch_of(run, f"{text}_parquet")
    results = run.session.read.parquet(str(run.results / f"{text}_parquet{lane}"))
    assert results._jdf.schema().catalogString() == batch._jdf.schema().catalogString()
    assert lines_of(results) == lines_of(batch)
    if text == "stateless" and not lane:
        assert run.lanes["stateless_parquet"].startswith("driver")


@pytest.mark.parametrize("format", ["json", "csv"])
@pytest.mark.parametrize("text", ["stateless", "window"])
def test_every_type_keeps_its_values_in_text(run: Run, text: str, format: str) -> None:
    name = f"{text}_{format}"
    lines = Counter(
        line
        for file in (run.results / name).glob(f"*.{format}")
        for line in file.read_text().splitlines()
    )
    assert lines == lines_of(batch_of(run, name), format)


def test_times_in_json_are_read_back_to_the_microsecond(run: Run) -> None:
    kinds = ("timestamp", "timestamp_ntz", "interval day to second", "time(6)", "decimal(38,10)")
    columns = ["id", *(f"c{number}" for number, kind in enumerate(VALUES) if kind in kinds)]
    source = run.source.select(*columns)
    files = run.session.read.schema(source.schema).json(str(run.results / "stateless_json"))
    assert lines_of(files) == lines_of(source)


def test_a_refusal_names_the_type_and_a_fix_that_works(run: Run, tmp_path: Path) -> None:
    gate = Headgate(run.session, state=tmp_path / "state")
    stream = Stream(name="s", format="python", schema="id INT")
    gate.add_stream(stream, rows=lambda first: [])
    for number, (refused, refusal) in enumerate(zip(REFUSED, run.refusals, strict=True)):
        assert refusal.clause == "column `c`"
        assert refusal.reason.startswith(f"has the type {refused.type}, "), refusal
        fix = refusal.fix.removeprefix("write ").replace("...", refused.value)
        gate.add_query(Query(name=f"q{number}", sql=f"SELECT {fix} FROM s", query_class="default"))
        if refused.declared is not None:
            with pytest.raises(ConfigRefused, match="declare the column as STRING or leave it out"):
                gate.add_stream(
                    Stream(name="t", format="python", schema=f"c {refused.declared}"),
                    rows=lambda first: [],
                )
    gate.stop()


def test_a_type_that_a_sink_cannot_write_is_refused(session: SparkSession) -> None:
    options = {"jdbc": {"url": "jdbc:derby:x", "table": "t", "key": "c"}}
    for format, kinds in NOT_WRITTEN.items():
        sink = Sink(format=format, options=options.get(format, {}))
        query = Query(name="q", sql="SELECT c FROM s", query_class="default", sink=sink)
        for kind in kinds:
            schema = StructType([StructField("c", ArrayType(kind()))])
            path = QueryPath(query=query, columns=("c",), schema=schema.json())
            with pytest.raises(QueryRefused, match=f"which sinks of format {format} cannot write"):
                refuse_outputs(session, path)


def test_a_type_that_a_source_cannot_read_is_refused(session: SparkSession, tmp_path: Path) -> None:
    gate = Headgate(session, state=tmp_path / "state")
    for kind in ("ARRAY<INT>", "VOID"):
        stream = Stream(name="c", format="csv", schema=f"c {kind}", options={"path": str(tmp_path)})
        with pytest.raises(ConfigRefused, match="which sources of format csv cannot read"):
            gate.add_stream(stream)
    gate.stop()


def test_time_is_refused_while_spark_does_not_write_it(spark: SparkSession, tmp_path: Path) -> None:
    gate = Headgate(spark, state=tmp_path / "state")
    gate.add_stream(Stream(name="s", format="python", schema="id INT"), rows=lambda first: [])
    query = Query(name="q", sql="SELECT TIME'12:00:00' AS t FROM s", query_class="default")
    with pytest.raises(QueryRefused, match=r"while spark.sql.timeType.enabled is off"):
        gate.add_query(query)
    gate.stop()


def test_every_type_of_pyspark_passes_or_stays() -> None:
    classes = [kind for kind in vars(spark_types).values() if isinstance(kind, type)]
    kinds = {kind for kind in classes if issubclass(kind, DataType)} - {StructField}
    supported = (*PASS, *STAY, ArrayType, MapType, StructType)
    assert kinds == {base for kind in supported for base in kind.__mro__ if base in kinds}


def test_a_rehearsal_invents_rows_of_every_type(session: SparkSession, tmp_path: Path) -> None:
    clone = own_session(session)
    source = rows_of_all_types(clone)
    trains = invent(clone, source.schema, 3, tmp_path)
    assert trains.table().num_rows == 3
    assert lines_of(trains.frame(clone).drop("_arrived_at_s")).total() == 3


def test_json_and_csv_are_read_in_the_driver_as_spark_reads_them(
    session: SparkSession, tmp_path: Path
) -> None:
    clone = own_session(session)
    texts = {
        "json": (
            "ts TIMESTAMP, n ARRAY<TIMESTAMP_NTZ>, i INTERVAL DAY TO SECOND, t TIME(6), v VARIANT,"
            " x VOID, s STRUCT<`a b`: MAP<STRING, TIMESTAMP>>",
            '{"ts": "2024-03-31 02:30:00.000001", "n": ["1500-01-01T00:00:00.5"], "v": {"a": [1]},'
            """ "i": "INTERVAL '1 02:03:04.123456' DAY TO SECOND", "t": "12:34:56.123456","""
            ' "s": {"a b": {"k": "2024-10-27T02:30:00.123456+01:00"}}}\n{"ts": null}\n',
        ),
        "csv": (
            "ts TIMESTAMP, n TIMESTAMP_NTZ, i INTERVAL DAY TO SECOND, t TIME(6), v VARIANT",
            "2024-03-31T02:30:00.000001,1500-01-01 00:00:00.123456,"
            "INTERVAL '1 02:03:04.123456' DAY TO SECOND,12:34:56.123456,1\n,,,,\n",
        ),
    }
    for format, (ddl, lines) in texts.items():
        (tmp_path / format).mkdir()
        (tmp_path / format / f"a.{format}").write_text(lines)
        polled = read_as_spark(clone, format, tmp_path / format, ddl)
        assert polled.table.num_rows == 2
        assert not polled.letters


def test_python_rows_have_intervals_and_times(session: SparkSession, tmp_path: Path) -> None:
    one = {"value": b"\x0c\x01", "metadata": b"\x01\x00\x00"}
    rows = [
        {"i": timedelta(microseconds=-1), "t": time(1, 2, 3, 4), "v": one},
        {"i": None, "t": None, "v": None},
    ]
    gate = Headgate(session, state=tmp_path / "state", rehearsal_s=0)
    stream = Stream(name="s", format="python", schema="i INTERVAL SECOND, t TIME(6), v VARIANT")
    gate.add_stream(stream, rows=lambda first: rows[first:])
    gate.add_query(Query(name="q", sql="SELECT * FROM s", query_class="default"))
    gate.start()
    consume(gate, 2)
    gate.stop()
    results = session.read.parquet(str(tmp_path / "state" / "results" / "q"))
    assert lines_of(results) == Counter(
        ["""{"i":"INTERVAL '-00.000001' SECOND","t":"01:02:03.000004","v":1}""", "{}"]
    )


def test_a_record_of_kafka_has_every_type(session: SparkSession) -> None:
    clone = own_session(session)
    source = rows_of_all_types(clone).drop("ts")
    records = records_of(clone, collected(source), source.schema, "q/0-0").collect()
    assert Counter(record.value for record in records) == lines_of(source)


def test_a_void_column_that_spark_calls_not_null_has_a_type_in_arrow(spark: SparkSession) -> None:
    """For example, the column of `explode(array())`."""
    frame = spark.sql("SELECT explode(array()) AS nothing")
    assert not frame.schema[0].nullable
    assert arrow_schema(frame.schema) == pa.schema([("nothing", pa.null())])
    assert collected(frame).num_rows == 0
