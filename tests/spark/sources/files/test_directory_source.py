"""Which files of a directory are read. Each is read once and whole."""

import gzip
import os
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from driver_reads import polled_of, read_as_spark, source_over
from pyspark.sql import SparkSession

from headgate.spark.sources.files import directory as directory_source

pytestmark = pytest.mark.spark


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat every file as settled at once."""
    monkeypatch.setattr(directory_source, "SETTLED_S", 0.0)


def test_only_files_that_the_pattern_names(session: SparkSession, tmp_path: Path) -> None:
    for name in ("a.json", "b.JSON", "c.txt", ".d.json", "_e.json"):
        (tmp_path / name).write_text('{"i": 1}\n')
    polled = read_as_spark(session, "json", tmp_path, "i INT", {"pathGlobFilter": "*.json"})
    assert set(polled.position) == {"a.json"}


def test_links_out_of_the_directory_are_passed_over_unless_that_is_allowed(
    session: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder, elsewhere = tmp_path / "folder", tmp_path / "elsewhere"
    for place in (folder, elsewhere):
        place.mkdir()
        (place / "a.json").write_text('{"i": 1}\n')
    (tmp_path / "way").symlink_to(folder)
    (folder / "inside.json").symlink_to("a.json")
    (folder / "out.json").symlink_to(elsewhere / "a.json")
    (folder / "up.json").symlink_to("../elsewhere/a.json")
    source = source_over(session, "json", tmp_path / "way", "i INT", {})
    assert source is not None
    assert set(polled_of(source).position) == {"a.json", "inside.json"}
    assert caplog.text.count("passes over links that lead out of its directory, such as") == 1
    source = source_over(session, "json", folder, "i INT", {"followSymlinks": "true"})
    assert source is not None
    assert len(polled_of(source).position) == 4


def test_a_parquet_file_that_is_half_written_is_read_once_and_whole(
    session: SparkSession, tmp_path: Path
) -> None:
    pq.write_table(pa.table({"i": pa.array(range(1000), "int32")}), tmp_path / "_whole")
    whole = (tmp_path / "_whole").read_bytes()
    source = source_over(session, "parquet", tmp_path, "i INT", {"maxFilesPerTrigger": "1"})
    assert source is not None
    file = tmp_path / "a.parquet"
    for size in (0, 10, len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole[:size])
        assert source.poll() is None
    pq.write_table(pa.table({"i": pa.array([-1], "int32")}), tmp_path / "b.parquet")
    polled = polled_of(source)
    assert list(polled.position) == ["b.parquet"]
    source.taken(polled)
    file.write_bytes(whole)
    polled = polled_of(source)
    assert polled.table.num_rows == 1000
    source.taken(polled)
    assert source.poll() is None


def test_a_directory_that_rests_is_listed_now_and_then_and_when_it_changes(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed, list_of = [], os.scandir
    monkeypatch.setattr(os, "scandir", lambda folder: (listed.append(folder), list_of(folder))[1])
    (tmp_path / "a.json").write_text('{"i": 1}\n')
    os.utime(tmp_path, (0, 0))  # as if nothing had happened for a long time
    source = source_over(session, "json", tmp_path, "i INT", {})
    assert source is not None
    source.taken(polled_of(source))
    assert source.poll() is None
    before = len(listed)
    for _ in range(10):
        assert source.poll() is None
    assert len(listed) == before
    (tmp_path / "b.json").write_text('{"i": 2}\n')
    polled = polled_of(source)
    assert set(polled.position) == {"b.json"}
    source.taken(polled)
    # The directory has just changed, so its time may not show a further change.
    for _ in range(10):
        assert source.poll() is None
    assert len(listed) == before + 11
    os.utime(tmp_path, (0, 0))
    assert source.poll() is None
    monkeypatch.setattr(directory_source, "LIST_NS", 0)
    assert source.poll() is None
    (tmp_path / "c.json").write_text('{"i": 3}\n')
    os.utime(tmp_path, (0, 0))  # a wrong clock: the listing shows the file nevertheless
    until_s = time.monotonic() + 20.0
    while (last := source.poll()) is None:
        assert time.monotonic() < until_s
    assert set(last.position) == {"c.json"}


@pytest.mark.parametrize("name", ["a.json", "a.json.gz"])
def test_a_text_file_that_is_half_written_is_read_once_and_whole(
    session: SparkSession, tmp_path: Path, name: str
) -> None:
    text = b'{"i": 1}\n{"i": 2}\n'
    whole = gzip.compress(text) if name.endswith("gz") else text
    source = source_over(session, "json", tmp_path, "i INT", {})
    assert source is not None
    (tmp_path / name).write_bytes(whole[:-4])
    assert source.poll() is None
    (tmp_path / name).write_bytes(whole)
    polled = polled_of(source)
    assert polled.table.to_pylist() == [{"i": 1}, {"i": 2}]
    assert not polled.letters


def test_a_last_line_without_end_is_read_when_the_file_has_settled(
    session: SparkSession, tmp_path: Path, hasty: None
) -> None:
    (tmp_path / "a.json").write_text('{"i": 1}\n{"i": 2}')
    assert read_as_spark(session, "json", tmp_path, "i INT").table.num_rows == 2


@pytest.mark.parametrize("kind", ["json", "csv"])
def test_lines_that_are_appended_are_read_and_a_copy_is_not(
    session: SparkSession, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directory_source, "LIST_NS", 0)
    options = {"header": "true"} if kind == "csv" else {}
    source = source_over(session, kind, tmp_path, "i INT", options)
    journalled: dict[str, str] = {}
    file, row = tmp_path / f"a.{kind}", '{{"i": {}}}\n' if kind == "json" else "{}\n"

    def append(text: str) -> None:
        with file.open("a") as out:
            out.write(text)

    def taken() -> list[int]:
        polled = polled_of(source)
        assert source is not None
        assert not polled.letters
        source.taken(polled)
        journalled.update(polled.position)
        return [row["i"] for row in polled.table.to_pylist()]

    append(("i\n" if kind == "csv" else "") + row.format(1))
    assert taken() == [1]
    append(row.format(2) + row.format(3)[:-2])  # the last line is still being written
    assert taken() == [2]
    assert source is not None
    assert source.poll() is None
    append(row.format(3)[-2:] + row.format(4))
    assert taken() == [3, 4]
    (tmp_path / "copy").write_bytes(file.read_bytes())
    (tmp_path / "copy").rename(file)
    assert source.poll() is None
    source = source_over(session, kind, tmp_path, "i INT", options)
    assert source is not None
    source.resume(journalled)
    assert source.poll() is None
    append(row.format(5))
    assert taken() == [5]


def test_a_source_is_not_empty_as_long_as_a_file_may_have_grown(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directory_source, "LIST_NS", 10**15)  # it looks once
    source = source_over(session, "json", tmp_path, "i INT", {})
    assert source is not None
    assert source.poll() is None
    assert source.is_empty
    file = tmp_path / "a.json"
    file.write_text('{"i": 1}\n')
    source.taken(polled_of(source))
    with file.open("a") as lines:
        lines.write('{"i": 2}\n')
    assert source.poll() is None
    assert not source.is_empty


@pytest.mark.parametrize("name", ["a.json", "a.json.gz", "a.parquet"])
def test_a_file_that_is_replaced_after_it_was_read_is_a_letter_once(
    session: SparkSession, tmp_path: Path, name: str, hasty: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directory_source, "LIST_NS", 0)

    def put(*numbers: int) -> None:
        lines = "".join(f'{{"i": {number}}}\n' for number in numbers).encode()
        if name.endswith("parquet"):
            pq.write_table(pa.table({"i": pa.array(numbers, "int32")}), tmp_path / "_new")
        else:
            (tmp_path / "_new").write_bytes(gzip.compress(lines) if "gz" in name else lines)
        (tmp_path / "_new").rename(tmp_path / name)

    kind = "parquet" if name.endswith("parquet") else "json"
    source = source_over(session, kind, tmp_path, "i INT", {})
    assert source is not None
    put(1)
    source.taken(polled_of(source))
    for numbers in ((2,), (3, 4)):
        put(*numbers)
        polled = polled_of(source)
        source.taken(polled)
        assert polled.table.num_rows == 0
        (letter,) = polled.letters
        assert letter.place == str(tmp_path / name)
        assert letter.reason == directory_source.CHANGED
        assert source.poll() is None


def test_a_journal_of_an_earlier_release_has_only_times(
    session: SparkSession, tmp_path: Path, hasty: None
) -> None:
    journalled = {}
    for number in range(2):
        file = tmp_path / f"{number}.json"
        file.write_text(f'{{"i": {number}}}\n')
        journalled[file.name] = str(file.stat().st_mtime_ns - number)  # the second has changed
    source = source_over(session, "json", tmp_path, "i INT", {})
    assert source is not None
    source.resume(journalled)
    polled = polled_of(source)
    assert [letter.place for letter in polled.letters] == [str(tmp_path / "1.json")]
    source.taken(polled)
    with (tmp_path / "0.json").open("a") as out:
        out.write('{"i": 5}\n')
    assert polled_of(source).table.to_pylist() == [{"i": 5}]


@pytest.mark.slow
def test_a_corrupt_file_is_a_letter_once_it_has_settled(
    session: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1 this is none PAR1")
    began_s = time.monotonic()
    polled = polled_of(source_over(session, "parquet", tmp_path, "i INT", {}))
    assert time.monotonic() - began_s >= directory_source.SETTLED_S
    assert polled.table.num_rows == 0
    (letter,) = polled.letters
    assert letter.place == str(tmp_path / "a.parquet")
    assert letter.reason


def test_a_file_with_values_of_another_type_is_a_letter(
    session: SparkSession, tmp_path: Path, hasty: None
) -> None:
    pq.write_table(pa.table({"i": ["not a number"]}), tmp_path / "a.parquet")
    (letter,) = polled_of(source_over(session, "parquet", tmp_path, "i INT", {})).letters
    assert "not a number" in letter.reason


def test_names_of_files_that_are_gone_are_forgotten_and_nothing_is_read_twice(
    session: SparkSession, tmp_path: Path
) -> None:
    """The journal knows what has been read, so a directory that is cleaned up costs no memory."""
    journalled: dict[str, str] = {}
    source = source_over(session, "json", tmp_path, "i INT", {})
    assert isinstance(source, directory_source.DirectorySource)
    source.resume(journalled)
    for number in range(20):
        (tmp_path / f"{number}.json").write_text(f'{{"i": {number}}}\n')
        polled = polled_of(source)
        assert list(polled.position) == [f"{number}.json"]
        journalled |= polled.position
        source.taken(polled)
        if number >= 2:
            (tmp_path / f"{number - 2}.json").unlink()
        assert source.poll() is None
        assert len(source._seen) <= 3
    (tmp_path / "4.json").write_text('{"i": 4}\n')  # a file that was read returns
    assert source.poll() is None
    again = source_over(session, "json", tmp_path, "i INT", {})
    assert again is not None
    again.resume(journalled)
    assert again.poll() is None


def test_a_file_whose_name_is_no_text_stops_nobody(
    session: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / os.fsdecode(b"caf\xe9.json")).write_text('{"i": 1}\n')
    (tmp_path / "b.json").write_text('{"i": 2}\n')
    source = source_over(session, "json", tmp_path, "i INT", {})
    polled = polled_of(source)
    assert list(polled.position) == ["b.json"]
    assert source is not None
    source.taken(polled)
    assert source.poll() is None
    assert caplog.text.count("names are not UTF-8") == 1
