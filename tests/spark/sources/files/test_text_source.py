"""The driver reads from JSON and CSV files what `spark.read` reads, row by row."""

import gzip
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from driver_reads import polled_of, read_as_spark, source_over
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

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


def test_json_of_every_type_with_empty_lines_and_files(
    session: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "a.json").write_text("\n\r\n   \n".join(JSON_LINES) + "\n\n")
    (tmp_path / "mac.json").write_bytes(b'\xef\xbb\xbf{"i": 1}\r{"i": 2}\r')
    (tmp_path / "b.json.gz").write_bytes(gzip.compress(b'{"i": 77}\n'))
    (tmp_path / "empty.json").write_text("")
    polled = read_as_spark(session, "json", tmp_path, JSON_DDL)
    assert polled.table.num_rows == len(JSON_LINES) + 3
    assert not polled.letters


def test_csv_with_header_quotes_and_formats(session: SparkSession, tmp_path: Path) -> None:
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
    polled = read_as_spark(session, "csv", tmp_path, TEXT_DDL, options)
    assert polled.table.num_rows == 6
    assert not polled.letters


def test_tabs_and_a_column_that_is_named_oddly(session: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1\tx\n2\t\n")
    polled = read_as_spark(session, "csv", tmp_path, "`a b.c` INT, `D` STRING", {"sep": "\\t"})
    assert polled.table.num_rows == 2


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
    session: SparkSession, rows: list[dict[str, Any]], ascii_only: bool
) -> None:
    with TemporaryDirectory() as name:
        lines = [json.dumps(row, ensure_ascii=ascii_only) + "\n" for row in rows]
        (Path(name) / "a.json").write_text("".join(lines), encoding="utf-8")
        ddl = "i INT, l BIGINT, x DOUBLE, b BOOLEAN, t STRING, many ARRAY<INT>,"
        polled = read_as_spark(session, "json", Path(name), ddl + " pairs MAP<STRING, INT>")
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
    session: SparkSession, rows: list[tuple[int | None, str, str]], ends: str
) -> None:
    def quoted(text: str) -> str:
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

    with TemporaryDirectory() as name:
        lines = [
            f"{'' if number is None else number},{quoted(one)},{quoted(other)}{ends}"
            for number, one, other in rows
        ]
        (Path(name) / "a.csv").write_bytes("".join(lines).encode())
        polled = read_as_spark(session, "csv", Path(name), "i INT, one STRING, other STRING")
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


def test_an_array_of_json_is_a_row_for_each_element(session: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(ARRAYS)
    polled = read_as_spark(session, "json", tmp_path, "i INT, t STRING")
    assert polled.table.num_rows == 10
    assert not polled.letters


def test_an_array_that_spark_finds_corrupt_is_a_letter(
    session: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "a.json").write_text("\n".join(BAD_ARRAYS) + "\n")
    ddl = "i INT, t STRING, _corrupt_record STRING"
    rows = session.read.schema(ddl).json(str(tmp_path)).cache()
    corrupt = {row["_corrupt_record"] for row in rows.collect()}
    polled = polled_of(source_over(session, "json", tmp_path, "i INT, t STRING", {}))
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
    session: SparkSession, tmp_path: Path, kind: str, bad: list[str]
) -> None:
    good = '{"i": 1, "t": "a"}' if kind == "json" else "1,a"
    file = tmp_path / f"a.{kind}"
    lines = [line for bad_line in bad for line in (good, bad_line)]
    file.write_text("\n".join([*lines, good]) + "\n")
    polled = polled_of(source_over(session, kind, tmp_path, "i INT, t STRING", {}))
    assert polled.table.to_pylist() == [{"i": 1, "t": "a"}] * (len(bad) + 1)
    assert [letter.record for letter in polled.letters] == bad
    places = [f"{file}:{2 * number}" for number in range(1, len(bad) + 1)]
    assert [letter.place for letter in polled.letters] == places
    assert all(kind.upper() in letter.reason for letter in polled.letters)
