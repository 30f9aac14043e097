"""Only what a file or line contains makes it a dead letter; anything else is tried again."""

import gzip
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from driver_reads import polled_of, source_over
from pyspark.sql import SparkSession

from headgate.spark.jvm.lane import row_files
from headgate.spark.sources.files import directory as directory_source

pytestmark = pytest.mark.spark


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat every file as settled at once, and read one that failed again at once."""
    monkeypatch.setattr(directory_source, "SETTLED_S", 0.0)
    monkeypatch.setattr(directory_source, "PAUSE_S", 0.0)


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield a real file system of 64 kB in place of shared memory."""
    folder = tmp_path / "shm"
    folder.mkdir()
    mount(["-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)])
    monkeypatch.setattr(row_files, "SHARED_MEMORY", folder)
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)  # this process has a folder in it


def mount(words: list[str]) -> None:
    if (
        os.geteuid()
        or subprocess.run(["mount", *words], capture_output=True, check=False).returncode
    ):
        pytest.skip("mounting is not permitted here")


def test_a_file_that_the_system_cannot_read_is_read_later_and_the_others_meanwhile(
    session: SparkSession, tmp_path: Path
) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.json").write_text(f'{{"t": "{name}"}}\n')
    # The memory of a process that has ended: the system says so, whatever the file contains.
    mount(["--bind", "/proc/self/mem", str(tmp_path / "a.json")])
    try:
        source = source_over(session, "json", tmp_path, "t STRING", {})
        polled = polled_of(source)
        assert source is not None
        assert polled.table.to_pylist() == [{"t": "b"}]
        source.taken(polled)
        for _ in range(3):
            assert source.poll() is None
        assert f"{tmp_path}/a.json cannot be read: [Errno 3]" in source.trouble
    finally:
        subprocess.run(["umount", str(tmp_path / "a.json")], check=True)
    polled = polled_of(source)
    assert polled.table.to_pylist() == [{"t": "a"}]
    assert polled.letters == ()
    source.taken(polled)
    assert source.trouble == ""


def test_lines_pass_by_the_state_folder_where_shared_memory_is_full(
    session: SparkSession, tmp_path: Path, tiny: Path
) -> None:
    for name in ("state", "source"):
        (tmp_path / name).mkdir()
    lines = "".join(f'{{"i": {number}}}\n' for number in range(20_000))
    (tmp_path / "source" / "a.json").write_text(lines)
    scratch = str(tmp_path / "state")
    source = source_over(session, "json", tmp_path / "source", "i INT", {}, scratch=scratch)
    assert polled_of(source).table["i"].to_pylist() == list(range(20_000))
    folders = (tiny, tmp_path / "state")
    assert not [path for folder in folders for path in folder.rglob("*") if path.is_file()]


def test_a_line_that_is_too_long_is_a_letter_and_the_others_are_read(
    session: SparkSession, tmp_path: Path
) -> None:
    lines = ['{"t": "a"}', '{"t": "' + "x" * 5000 + '"}', "none", '{"t": "b"}', ""]
    (tmp_path / "a.json.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    source = source_over(session, "json", tmp_path, "t STRING", {}, most_record_bytes=4000)
    polled = polled_of(source)
    assert polled.table.to_pylist() == [{"t": "a"}, {"t": "b"}]
    long, short = polled.letters
    assert (long.place, short.place) == tuple(f"{tmp_path}/a.json.gz:{line}" for line in (2, 3))
    assert long.record == lines[1][:1000]
    assert long.reason == (
        "it has 5,009 bytes, more than 4,000 (most_record_bytes); only its beginning is shown"
    )


@pytest.mark.parametrize("kind", ["json", "parquet"])
def test_a_file_that_is_too_large_once_decompressed_is_a_letter(
    session: SparkSession, tmp_path: Path, kind: str
) -> None:
    if kind == "json":
        (tmp_path / "a.gz").write_bytes(gzip.compress(b'{"t": "a"}\n' * 10_000))
    else:
        rows = pa.table({"t": [f"{number:09d}" for number in range(10_000)]})
        pq.write_table(rows, tmp_path / "a", compression="zstd", use_dictionary=False)
    assert next(tmp_path.iterdir()).stat().st_size < 50_000
    source = source_over(session, kind, tmp_path, "t STRING", {}, most_file_bytes=100_000)
    polled = polled_of(source)
    assert polled.table.num_rows == 0
    (letter,) = polled.letters
    assert letter.reason == "it has more than 100,000 bytes (most_file_bytes)"


def test_lines_at_which_spark_fails_are_letters_and_their_neighbors_are_read(
    session: SparkSession, tmp_path: Path
) -> None:
    """Under this policy, Spark raises at a time that its old parser reads in another way."""
    policy = "spark.sql.legacy.timeParserPolicy"
    session.conf.set(policy, "EXCEPTION")
    try:
        days = [f"2024-01-{number:02d}" for number in range(1, 28)]
        days[7] = days[20] = "2024-1-1-1"
        (tmp_path / "a.csv").write_text("".join(f"{day}\n" for day in days))
        options = {"timestampFormat": "yyyy-MM-dd"}
        polled = polled_of(source_over(session, "csv", tmp_path, "ts TIMESTAMP", options))
    finally:
        session.conf.unset(policy)
    assert polled.table.num_rows == 25
    assert [letter.place for letter in polled.letters] == [
        f"{tmp_path}/a.csv:{line}" for line in (8, 21)
    ]
    assert all("upgrading" in letter.reason for letter in polled.letters)
