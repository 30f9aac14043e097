"""What the driver reads of a source is what `spark.read` reads, row by row."""

import gzip
import json
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from headgate import Headgate, Query, Stream
from headgate.errors import ConfigRefused
from headgate.spark import sources
from headgate.spark.budget import Limits
from headgate.spark.journal import Journal, Train
from headgate.spark.polling import Line, Poller
from headgate.spark.session import own_session
from headgate.spark.sources import GeneratorSource, Polled, RowSource, Source, polled_source
from headgate.spark.stream_log import StreamLog
from headgate.spark.train_cache import TrainCache
from headgate.workloads.forest import SCHEMA

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def own(spark: SparkSession) -> SparkSession:
    return own_session(spark)


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file counts as settled at once."""
    monkeypatch.setattr(sources, "SETTLED_S", 0.0)


def _schema(own: SparkSession, ddl: str) -> StructType:
    return own.createDataFrame([], ddl).schema


def _source(
    own: SparkSession, kind: str, folder: Path, ddl: str, options: Mapping[str, str]
) -> Source | None:
    stream = Stream(
        name="s", format=kind, options={"path": str(folder), **options}, schema=ddl
    )  # fmt: skip
    return polled_source(own, stream, _schema(own, ddl))


def _polled(source: Source | None, deadline_s: float = 10.0) -> Polled:
    """Asks until there is something, as the poller does."""
    assert source is not None
    ends_at_s = time.monotonic() + deadline_s
    while (polled := source.poll()) is None:
        assert time.monotonic() < ends_at_s, "nothing came"
    return polled


def _same(
    own: SparkSession, kind: str, folder: Path, ddl: str, options: Mapping[str, str] = {}
) -> Polled:
    """Holds what the driver reads against `spark.read`."""
    polled = _polled(_source(own, kind, folder, ddl, options))
    read = own.read.format(kind).schema(ddl).options(**options).load(str(folder)).toArrow()
    assert polled.table.schema.names == read.schema.names
    assert polled.table.schema.types == read.schema.types
    assert _sorted(polled.table) == _sorted(read)
    return polled


def _sorted(table: pa.Table) -> list[str]:
    columns = [column.to_pylist() for column in table.columns]
    return sorted(repr(row) for row in zip(*columns, strict=True))


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


def test_parquet_of_every_type(own: SparkSession, tmp_path: Path) -> None:
    part = {**FULL, "many": [], "pairs": [], "inner": {"a": None, "odd name": None, "deep": None}}
    table = pa.Table.from_pylist([FULL, EMPTY, part], ARROW)
    pq.write_table(table, tmp_path / "a.parquet")
    pq.write_table(table.slice(0, 0), tmp_path / "empty.parquet")
    polled = _same(own, "parquet", tmp_path, DDL)
    assert polled.table.num_rows == 3
    assert set(polled.position) == {"a.parquet", "empty.parquet"}


def test_parquet_with_other_columns_in_another_case_and_order(
    own: SparkSession, tmp_path: Path
) -> None:
    inner = pa.array([{"Z": 1, "A": 5}, None], pa.struct([("Z", pa.int8()), ("A", pa.int32())]))
    table = pa.table(
        {"EXTRA": [1, 2], "T": ["x", None], "Inner": inner, "I": pa.array([3, 4], "int32")}
    )
    pq.write_table(table, tmp_path / "a.parquet")
    ddl = "i INT, missing STRING, t STRING, inner STRUCT<a: INT, gone: ARRAY<INT>>"
    polled = _same(own, "parquet", tmp_path, ddl)
    assert polled.table["inner"].to_pylist() == [{"a": 5, "gone": None}, None]


def test_parquet_of_spark_itself_and_of_old_instants(own: SparkSession, tmp_path: Path) -> None:
    frame = own.sql(
        "SELECT id, timestamp_micros(id * 7777777777777 - 3) AS ts, array(named_struct('a', id))"
        " AS many FROM range(-3, 4)"
    )
    frame.coalesce(1).write.parquet(str(tmp_path / "new"))
    own.conf.set("spark.sql.parquet.outputTimestampType", "INT96")
    try:
        frame.coalesce(1).write.parquet(str(tmp_path / "old"))
    finally:
        own.conf.unset("spark.sql.parquet.outputTimestampType")
    ddl = "id BIGINT, ts TIMESTAMP, many ARRAY<STRUCT<a: BIGINT>>"
    for folder in ("new", "old"):
        assert _same(own, "parquet", tmp_path / folder, ddl).table.num_rows == 7


def test_instants_finer_than_microseconds_are_cut_downwards(
    own: SparkSession, tmp_path: Path
) -> None:
    instants = pa.array([1_001, -1, -1_001, None], pa.timestamp("ns", "UTC"))
    pq.write_table(pa.table({"ts": instants}), tmp_path / "a.parquet", version="2.6")
    polled = _polled(_source(own, "parquet", tmp_path, "ts TIMESTAMP", {}))
    found = polled.table["ts"].cast(pa.int64()).to_pylist()
    assert found == [1, -1, -2, None]


def test_a_name_of_the_path_is_no_column(own: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "year=2020"
    folder.mkdir()
    pq.write_table(pa.table({"year": [7], "a": [1]}), folder / "a.parquet")
    polled = _polled(_source(own, "parquet", folder, "year BIGINT, a BIGINT", {}))
    assert polled.table.to_pylist() == [{"year": 7, "a": 1}]


TEXT_DDL = (
    "i INT, l BIGINT, x DOUBLE, b BOOLEAN, t STRING, d DATE, m DECIMAL(12,3), ts TIMESTAMP,"
    " wall TIMESTAMP_NTZ"
)
JSON_DDL = (
    TEXT_DDL + ", raw BINARY, many ARRAY<INT>, pairs MAP<STRING, INT>,"
    " inner STRUCT<a: INT, `odd name`: STRING>"
)
JSON_LINES = [
    '{"i": 1, "l": 9223372036854775807, "x": 1e300, "b": true, "t": "a\\"b\\u2603", "d":'
    ' "2024-02-29", "m": 123456789.125, "ts": "2024-01-01T00:00:00.123456Z", "wall":'
    ' "2024-01-01T00:00:00.5", "raw": "AAE=", "many": [1, null], "pairs": {"a": 1, "b": null},'
    ' "inner": {"odd name": "x", "a": 3}}',
    '  {"t": null, "extra": [1, 2]}  ',
    "{}",
    '{"T": "another case", "ts": "2024-01-01 02:00:00+02:00", "i": -5, "i": 6}',
]


def test_json_of_every_type_with_empty_lines_and_files(own: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("\n\r\n   \n".join(JSON_LINES) + "\n\n")
    (tmp_path / "mac.json").write_bytes(b'\xef\xbb\xbf{"i": 1}\r{"i": 2}\r')
    (tmp_path / "b.json.gz").write_bytes(gzip.compress(b'{"i": 77}\n'))
    (tmp_path / "empty.json").write_text("")
    polled = _same(own, "json", tmp_path, JSON_DDL)
    assert polled.table.num_rows == len(JSON_LINES) + 3
    assert not polled.letters


def test_csv_with_header_quotes_and_formats(own: SparkSession, tmp_path: Path) -> None:
    lines = [
        "",
        "i;l;x;b;t;d;m;ts;wall",
        "1;2;0.5;true;'a;b ''c';29.02.2024;1.125;2024/01/02 03;2024-01-01T00:00:00",
        "NIL;NIL;NIL;NIL;'';NIL;NIL;NIL;NIL",
        "   ",
        "2;3;-1;false; spaces ;01.01.1970;-0.5;1969/12/31 23;NIL",
    ]
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress("\r\n".join([*lines[1:], ""]).encode()))
    (tmp_path / "empty.csv").write_text("")
    options = {
        "Header": "true", "sep": ";", "quote": "'", "escape": "'", "nullValue": "NIL",
        "dateFormat": "dd.MM.yyyy", "timestampFormat": "yyyy/MM/dd HH",
    }  # fmt: skip
    polled = _same(own, "csv", tmp_path, TEXT_DDL, options)
    assert polled.table.num_rows == 6
    assert not polled.letters


def test_tabs_and_a_column_that_is_named_oddly(own: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1\tx\n2\t\n")
    polled = _same(own, "csv", tmp_path, "`a b.c` INT, `D` STRING", {"sep": "\\t"})
    assert polled.table.num_rows == 2


def test_only_files_that_the_pattern_names(own: SparkSession, tmp_path: Path) -> None:
    for name in ("a.json", "b.JSON", "c.txt", ".d.json", "_e.json"):
        (tmp_path / name).write_text('{"i": 1}\n')
    polled = _same(own, "json", tmp_path, "i INT", {"pathGlobFilter": "*.json"})
    assert set(polled.position) == {"a.json"}


texts = st.none() | st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=8)
json_rows = st.fixed_dictionaries(
    {
        "i": st.none() | st.integers(-(2**31), 2**31 - 1),
        "l": st.none() | st.integers(-(2**63), 2**63 - 1),
        "x": st.none() | st.floats(allow_nan=False, allow_infinity=False),
        "b": st.none() | st.booleans(),
        "t": texts,
        "many": st.none() | st.lists(st.none() | st.integers(-9, 9), max_size=3),
        "pairs": st.none() | st.dictionaries(st.text("ab.`", max_size=3), st.integers(-9, 9)),
    }
)


@settings(max_examples=4)
@given(rows=st.lists(json_rows, max_size=12), ascii_only=st.booleans())
def test_any_json_comes_as_spark_reads_it(
    own: SparkSession, rows: list[dict[str, Any]], ascii_only: bool
) -> None:
    with TemporaryDirectory() as name:
        lines = [json.dumps(row, ensure_ascii=ascii_only) + "\n" for row in rows]
        (Path(name) / "a.json").write_text("".join(lines), encoding="utf-8")
        ddl = "i INT, l BIGINT, x DOUBLE, b BOOLEAN, t STRING, many ARRAY<INT>,"
        polled = _same(own, "json", Path(name), ddl + " pairs MAP<STRING, INT>")
        assert polled.table.num_rows == len(rows)


csv_texts = st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "Zs"]), max_size=6)


@settings(max_examples=4)
@given(
    rows=st.lists(
        st.tuples(st.none() | st.integers(-(2**31), 2**31 - 1), csv_texts, csv_texts), max_size=12
    ),
    ends=st.sampled_from(["\n", "\r\n"]),
)
def test_any_csv_comes_as_spark_reads_it(
    own: SparkSession, rows: list[tuple[int | None, str, str]], ends: str
) -> None:
    def quoted(text: str) -> str:
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

    with TemporaryDirectory() as name:
        lines = [
            f"{'' if number is None else number},{quoted(one)},{quoted(other)}{ends}"
            for number, one, other in rows
        ]
        (Path(name) / "a.csv").write_bytes("".join(lines).encode())
        polled = _same(own, "csv", Path(name), "i INT, one STRING, other STRING")
        assert polled.table.num_rows == len(rows)


ARRAYS = """
[{"i": 2, "t": "b, ]}"}, {"i": 3, "t": "\\\\\\"[{"}]
[]
  [ {"t": [1,{"a":"]"}]} ,{"i": 10},{} ]
[{"i": 11}] trailing
[{'i': 15, 't': 'it"s'}, {"t": "it's"}]
[{"i": 16}][{"i": 17}]
{"i": 18, "t": [1,2]}
"""
BAD_ARRAYS = [
    '[{"i": 1}, {"i": "x"}]', '[{"i": 1}, null]', '[{"i": 1}, 7]', '[[{"i": 9}]]', '[{"i": 12},',
    '[{"i": 13},]', '[{"i": 14} {"i": 15}]', '["{", {"i": 1}]', "[null]", '[{"t": "x}]',
]  # fmt: skip


def test_an_array_of_json_is_a_row_for_each_element(own: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(ARRAYS)
    polled = _same(own, "json", tmp_path, "i INT, t STRING")
    assert polled.table.num_rows == 10
    assert not polled.letters


def test_an_array_that_spark_finds_corrupt_is_a_letter(own: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("\n".join(BAD_ARRAYS) + "\n")
    ddl = "i INT, t STRING, _corrupt_record STRING"
    rows = own.read.schema(ddl).json(str(tmp_path)).cache()
    corrupt = {row["_corrupt_record"] for row in rows.collect()}
    polled = _polled(_source(own, "json", tmp_path, "i INT, t STRING", {}))
    assert polled.table.num_rows == 0
    assert {letter.record for letter in polled.letters} == corrupt == set(BAD_ARRAYS)


@pytest.mark.parametrize(
    ("kind", "bad"),
    [
        ("json", ['{"i": 1', '{"i": "x"}', "[1]", "null", "7", *BAD_ARRAYS]),
        ("csv", ["x,a", "1,a,b,c", "1"]),
    ],
)
def test_what_cannot_be_parsed_is_a_letter_with_its_place(
    own: SparkSession, tmp_path: Path, kind: str, bad: list[str]
) -> None:
    good = '{"i": 1, "t": "a"}' if kind == "json" else "1,a"
    file = tmp_path / f"a.{kind}"
    lines = [line for each in bad for line in (good, each)]
    file.write_text("\n".join([*lines, good]) + "\n")
    polled = _polled(_source(own, kind, tmp_path, "i INT, t STRING", {}))
    assert polled.table.to_pylist() == [{"i": 1, "t": "a"}] * (len(bad) + 1)
    assert [letter.record for letter in polled.letters] == bad
    places = [f"{file}:{2 * number}" for number in range(1, len(bad) + 1)]
    assert [letter.place for letter in polled.letters] == places
    assert all(kind.upper() in letter.reason for letter in polled.letters)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("json", {"multiLine": "true"}), ("csv", {"MULTILINE": "true"}), ("csv", {"comment": "#"}),
        ("csv", {"mode": "DROPMALFORMED"}), ("json", {"encoding": "UTF-16"}),
        ("json", {"modifiedAfter": "2020-01-01T00:00:00"}), ("parquet", {"mergeSchema": "true"}),
        ("json", {"columnNameOfCorruptRecord": "bad"}), ("json", {"pathGlobFilter": "{a,b}.json"}),
        ("csv", {"recursiveFileLookup": "true"}), ("orc", {}), ("text", {}),
    ],
)  # fmt: skip
def test_what_the_driver_does_not_honour_is_left_to_structured_streaming(
    own: SparkSession, tmp_path: Path, kind: str, options: dict[str, str]
) -> None:
    assert _source(own, kind, tmp_path, "i INT", options) is None


def test_columns_that_spark_fills_are_left_to_structured_streaming(
    own: SparkSession, tmp_path: Path
) -> None:
    assert _source(own, "json", tmp_path, "i INT, _corrupt_record STRING", {}) is None
    (tmp_path / "day=1").mkdir()
    assert _source(own, "json", tmp_path, "i INT, day INT", {}) is None


def test_a_parquet_file_that_is_half_written_is_read_once_and_whole(
    own: SparkSession, tmp_path: Path
) -> None:
    pq.write_table(pa.table({"i": pa.array(range(1000), "int32")}), tmp_path / "_whole")
    whole = (tmp_path / "_whole").read_bytes()
    source = _source(own, "parquet", tmp_path, "i INT", {"maxFilesPerTrigger": "1"})
    assert source is not None
    file = tmp_path / "a.parquet"
    for size in (0, 10, len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole[:size])
        assert source.poll() is None
    pq.write_table(pa.table({"i": pa.array([-1], "int32")}), tmp_path / "b.parquet")
    polled = _polled(source)
    assert list(polled.position) == ["b.parquet"]
    source.taken(polled)
    file.write_bytes(whole)
    polled = _polled(source)
    assert polled.table.num_rows == 1000
    source.taken(polled)
    assert source.poll() is None


@pytest.mark.parametrize("name", ["a.json", "a.json.gz"])
def test_a_text_file_that_is_half_written_is_read_once_and_whole(
    own: SparkSession, tmp_path: Path, name: str
) -> None:
    text = b'{"i": 1}\n{"i": 2}\n'
    whole = gzip.compress(text) if name.endswith("gz") else text
    source = _source(own, "json", tmp_path, "i INT", {})
    assert source is not None
    (tmp_path / name).write_bytes(whole[:-4])
    assert source.poll() is None
    (tmp_path / name).write_bytes(whole)
    polled = _polled(source)
    assert polled.table.to_pylist() == [{"i": 1}, {"i": 2}]
    assert not polled.letters


def test_a_last_line_without_end_is_read_when_the_file_has_settled(
    own: SparkSession, tmp_path: Path, hasty: None
) -> None:
    (tmp_path / "a.json").write_text('{"i": 1}\n{"i": 2}')
    assert _same(own, "json", tmp_path, "i INT").table.num_rows == 2


@pytest.mark.slow
def test_a_corrupt_file_is_a_letter_once_it_has_settled(own: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1 this is none PAR1")
    began_s = time.monotonic()
    polled = _polled(_source(own, "parquet", tmp_path, "i INT", {}))
    assert time.monotonic() - began_s >= sources.SETTLED_S
    assert polled.table.num_rows == 0
    (letter,) = polled.letters
    assert letter.place == str(tmp_path / "a.parquet")
    assert letter.reason


def test_a_file_with_values_of_another_type_is_a_letter(
    own: SparkSession, tmp_path: Path, hasty: None
) -> None:
    pq.write_table(pa.table({"i": ["not a number"]}), tmp_path / "a.parquet")
    (letter,) = _polled(_source(own, "parquet", tmp_path, "i INT", {})).letters
    assert "not a number" in letter.reason


class Rig:
    """A poller over one source, as the engine has it."""

    def __init__(self, own: SparkSession, state: Path, source: Source, ddl: str) -> None:
        self.journal = Journal(state)
        cache = TrainCache(Limits().cache_bytes)
        self.log = StreamLog(state, "s", self.journal, _schema(own, ddl), cache)
        stream = Stream(name="s", format="parquet", schema=ddl, trigger_s=0.01)
        self.line = Line(0, stream, self.log, source)
        self.trains: list[Train] = []
        self.letters = state / "dead-letters" / "s.jsonl"
        self.poller = Poller(
            [self.line],
            self.journal,
            self.letters.parent,
            lambda _, train: self.trains.append(train),
        )
        self.poller.start()

    def until(self, done: Any, deadline_s: float = 20.0) -> None:
        ends_at_s = time.monotonic() + deadline_s
        while not done():
            assert time.monotonic() < ends_at_s, "in vain"
            time.sleep(0.005)

    def rows(self) -> list[dict[str, Any]]:
        table = self.log.table(0, self.log.next_number)
        return [{**row} for row in table.drop_columns(["_arrived_at_s"]).to_pylist()]

    def close(self) -> None:
        self.poller.stop()
        self.journal.close()


def test_a_directory_that_vanishes_and_returns_is_told_of_once(
    own: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "a.json").write_text('{"i": 1}\n')
    source = _source(own, "json", folder, "i INT", {})
    assert source is not None
    rig = Rig(own, tmp_path / "state", source, "i INT")
    rig.until(lambda: len(rig.trains) == 1)
    folder.rename(tmp_path / "away")
    rig.until(lambda: rig.line.failing)
    failed_at_s = rig.line.due_at_s
    rig.until(lambda: rig.line.due_at_s > failed_at_s)  # asked again, and failed again
    (tmp_path / "away" / "b.json").write_text('{"i": 2}\n')
    (tmp_path / "away").rename(folder)
    rig.until(lambda: len(rig.trains) == 2)
    rig.close()
    assert rig.rows() == [{"i": 1}, {"i": 2}]
    assert caplog.text.count("stream 's' stopped") == 1
    assert caplog.text.count("stream 's' is back") == 1


def test_letters_are_kept_once_though_the_journal_fails_for_a_while(
    own: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headgate.spark.polling.PAUSE_S", 0.01)
    (tmp_path / "a.json").write_text('{"i": 1}\nnonsense\n')
    source = _source(own, "json", tmp_path, "i INT", {})
    assert source is not None
    add, left = Journal.add_trains, [3]

    def full(journal: Journal, *args: Any) -> None:
        left[0] -= 1
        if left[0] >= 0:
            raise OSError("no space left on device")
        add(journal, *args)

    monkeypatch.setattr(Journal, "add_trains", full)
    rig = Rig(own, tmp_path / "state", source, "i INT")
    rig.until(lambda: rig.trains)
    rig.close()
    assert rig.rows() == [{"i": 1}]
    (line,) = rig.letters.read_text().splitlines()
    letter = json.loads(line)
    assert letter["record"] == "nonsense"
    assert letter["place"].endswith("a.json:2")


def test_a_train_that_came_again_longer_is_in_memory_as_it_is_on_disk(
    own: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The generator has more to give when it is asked again after a failure of the journal."""
    monkeypatch.setattr("headgate.spark.polling.PAUSE_S", 0.2)
    add, left = Journal.add_trains, [2]

    def full(journal: Journal, *args: Any) -> None:
        left[0] -= 1
        if left[0] >= 0:
            raise OSError("no space left on device")
        add(journal, *args)

    monkeypatch.setattr(Journal, "add_trains", full)
    rig = Rig(own, tmp_path, GeneratorSource({"rate_per_s": "2000", "seed": "3"}), SCHEMA)
    rig.until(lambda: len(rig.trains) > 3)
    rig.close()
    for number in range(rig.log.next_number):
        on_disk = pq.read_table(rig.log.path(number)).num_rows
        assert rig.log.table(number, number + 1).num_rows == on_disk


def test_the_generator_goes_on_with_the_next_tuple(own: SparkSession, tmp_path: Path) -> None:
    options = {"rate_per_s": "3000", "seed": "5", "tuples": "900"}
    seen: list[dict[str, Any]] = []
    for most in (200, 500, 900):
        rig = Rig(own, tmp_path, GeneratorSource({**options, "tuples": str(most)}), SCHEMA)
        rig.until(lambda rig=rig, most=most: rig.journal.positions("s").get("tuple") == str(most))
        seen = rig.rows()
        rig.close()
        assert len(seen) == most
    alone = GeneratorSource(options)
    parts: list[dict[str, Any]] = []
    while len(parts) < 900:
        if (polled := alone.poll()) is not None:
            parts += polled.table.drop_columns(["ts"]).to_pylist()
            alone.taken(polled)
    assert [{k: v for k, v in row.items() if k != "ts"} for row in seen] == parts


def test_rows_of_an_iterator_that_fails_are_asked_for_again(own: SparkSession) -> None:
    asked: list[int] = []

    def rows(first: int) -> Iterator[dict[str, Any]]:
        asked.append(first)
        for number in range(first, 6):
            if number == 4 and len(asked) == 1:
                raise OSError("the line is down")
            yield {"i": number, "extra": "passed over"} if number != 2 else {"i": "two"}

    stream = Stream(name="s", format="python", options={"rowsPerPoll": "3"}, schema="i INT")
    source = RowSource(stream, _schema(own, "i INT"), rows)
    source.resume({})
    first = _polled(source)
    assert source.poll() is first
    assert first.table.to_pylist() == [{"i": 0}, {"i": 1}]
    assert first.letters[0].place == "row 2"
    source.taken(first)
    with pytest.raises(OSError, match="the line is down"):
        source.poll()
    second = _polled(source)
    assert second.table.to_pylist() == [{"i": 3}, {"i": 4}, {"i": 5}]
    assert asked == [0, 3]


@pytest.mark.slow
def test_lines_that_belong_together_come_by_structured_streaming(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "a.json").write_text('{\n"i": 1,\n"t": "a"\n}\n')
    (folder / "b.json").write_text('[\n{"i": 2},\n{"t": "b"}\n]\n')
    options = {"path": str(folder), "multiLine": "true"}
    gate = Headgate(spark, state=tmp_path / "state", classes={"H": 1}, rehearsal_s=0)
    gate.add_stream(Stream(name="s", format="json", options=options, schema="i INT, t STRING"))
    gate.add_query(Query(name="q", sql="SELECT * FROM s", query_class="H"))
    gate.start()
    ends_at_s = time.monotonic() + 60
    while gate.totals()["q"][0] < 3:
        assert time.monotonic() < ends_at_s, gate.report().errors
        gate.wait(0.05)
    gate.stop()
    read = spark.read.schema("i INT, t STRING").options(multiLine="true").json(str(folder))
    files = sorted((tmp_path / "state/results/q").glob("*.parquet"))
    assert _sorted(pa.concat_tables(map(pq.read_table, files))) == _sorted(read.toArrow())


def test_what_only_structured_streaming_can_do_is_refused_where_the_driver_must(
    spark: SparkSession, tmp_path: Path
) -> None:
    options = {"path": str(tmp_path), "multiLine": "true"}
    stream = Stream(name="s", format="json", options=options, schema="i INT", ingest="driver")
    gate = Headgate(spark, state=tmp_path / "state", classes={"H": 1}, rehearsal_s=0)
    gate.add_stream(stream)
    gate.add_query(Query(name="q", sql="SELECT * FROM s", query_class="H"))
    with pytest.raises(ConfigRefused, match="stream 's': ingest is 'driver', but must be auto or"):
        gate.start()
    gate.stop()
