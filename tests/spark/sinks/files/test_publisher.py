"""Collected and compacted results: each row once for a reader of the manifest, at any instant."""

import time
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from pathlib import Path as File

import pyarrow as pa
import pytest
from crash import Crash, CrashAt
from publisher_run import EXPECTED, ROWS, Run, numbers_in

import headgate as hg
from headgate.access import PRIVATE
from headgate.result_files import MANIFEST, visible
from headgate.spark.sinks.files import compaction, publisher
from headgate.spark.sinks.files.file_sink import FileSink
from headgate.spark.sinks.files.merging import merged

POINTS = {
    "results written": 10, "step journalled": 10, "result visible": 12, "files merged": 5,
    "merge journalled": 5, "replaced file removed": 9,
}  # fmt: skip
"""Points where a crash must lose nothing, and how often a run reaches them at least."""


@pytest.fixture(autouse=True)
def _few_files_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "FEW", 3)
    monkeypatch.setattr(compaction, "TIERS", 1)


SINKS = {
    "collected": hg.Sink(commit_every_s=60.0),
    "compacted": hg.Sink(compact=True),
    "lines": hg.Sink(format="json", commit_every_s=60.0, compact=True),
    "both": hg.Sink(commit_every_s=60.0, compact=True),
}


@pytest.mark.parametrize("kind", SINKS)
def test_a_crash_at_any_instant_loses_nothing_and_repeats_nothing(
    tmp_path: File, kind: str
) -> None:
    for point, times in POINTS.items():
        for after in range(0, times, 2 if kind == "both" else 6):
            folder = tmp_path / f"{point}-{after}"
            placed = replace(SINKS[kind], path=str(folder / "out"))
            crash = CrashAt(point, after)
            first = Run(folder, placed, crash)
            with suppress(Crash):
                first()
            first.end()
            assert crash.dead.is_set() or kind != "both"
            first.look()
            assert numbers_in(folder / "out") <= EXPECTED
            second = Run(folder, placed)
            second.seen = first.seen
            second()
            second.look()
            assert numbers_in(folder / "out") == EXPECTED, (point, after)
            assert not list((folder / "out").glob("_*/*"))
            second.end()


def test_a_reader_of_the_manifest_never_misses_what_it_saw_nor_sees_it_twice(
    tmp_path: File,
) -> None:
    seen: Counter[int] = Counter()

    def read(point: str) -> None:
        nonlocal seen
        if (tmp_path / "out").is_dir():
            now = numbers_in(tmp_path / "out")
            assert seen <= now <= EXPECTED, point
            seen = now

    run = Run(tmp_path, replace(SINKS["both"], path=str(tmp_path / "out")), read)
    run()
    assert seen == EXPECTED
    run.end()


def test_replaced_files_stay_for_an_hour_unlisted(
    tmp_path: File, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(tmp_path, hg.Sink(path=str(tmp_path / "out"), compact=True))
    run()
    run.publisher.remove_replaced()
    files = {str(tmp_path / "out" / name) for name in visible(tmp_path / "out")}
    listed = set(hg.results(tmp_path / "out").files)
    assert len(files - listed) == len(run.commit.intents.replaced()) > 3
    other_file = File(sorted(files - listed)[0])  # somebody puts another file in its place
    other_file.write_bytes(b"other")
    now_s = time.time()
    monkeypatch.setattr(publisher.time, "time", lambda: now_s + publisher.KEEP_S + 1)
    run.publisher.remove_replaced()
    assert {str(tmp_path / "out" / name) for name in visible(tmp_path / "out")} == (
        listed | {str(other_file)}
    )
    assert run.commit.intents.replaced() == []
    run.end()


def test_another_sink_shows_what_a_dead_run_has_collected(tmp_path: File) -> None:
    folder = tmp_path / "out"
    first = Run(tmp_path, hg.Sink(path=str(folder), commit_every_s=60.0))
    for train in range(3):
        first.take(train)
    first.end()
    assert not list(visible(folder))
    second = Run(tmp_path, hg.Sink(path=str(folder), format="json", commit_every_s=60.0))
    second.take(3)
    second.publisher.publish(["q"])
    second.publisher.publish(["q"])
    assert sorted(visible(folder)) == [
        "000000000000-000000000002.parquet", "000000000003-000000000003.json",
    ]  # fmt: skip
    second.end()


def test_a_manifest_begins_with_what_is_there_and_survives_damage(tmp_path: File) -> None:
    folder = tmp_path / "out"
    first = Run(tmp_path, hg.Sink(path=str(folder)))
    first(4)
    first.end()
    second = Run(tmp_path, hg.Sink(path=str(folder), compact=True))
    second(7)
    second.end()
    manifest = folder / MANIFEST
    whole_text = manifest.read_text()
    assert numbers_in(folder) == Counter(range(7 * 4))
    with manifest.open("a") as file:
        file.write("000000000099-0000")  # a crash while a line was written
    assert numbers_in(folder) == Counter(range(7 * 4))
    # Without `compact`, the folder keeps its manifest: it says which files count.
    third = Run(tmp_path, hg.Sink(path=str(folder)))
    third.take(7)
    assert manifest.read_text() == f"{whole_text}000000000007-000000000007.parquet\n"
    manifest.unlink()
    third.take(8)
    assert len(manifest.read_text().split()) > len(whole_text.split()) + 1  # all that is there
    third.end()


def test_a_commit_appends_a_line_and_many_commits_leave_few_files(
    tmp_path: File, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    files: list[tuple[File, int]] = []
    written_bytes = 0
    for number in range(20_000):
        files.append((File(str(number)), 2_000))
        if number % compaction.FEW == 0 and (chosen_files := compaction.chosen(files, 128e6)):
            count = sum(size for _, size in files[-len(chosen_files) :])
            files[-len(chosen_files) :] = [(chosen_files[-1], count)]
            written_bytes += count
    assert len(files) < 100
    assert written_bytes < 8 * 20_000 * 2_000
    run = Run(tmp_path, hg.Sink(path=str(tmp_path / "out"), compact=True))
    run.take(0)
    inode = (tmp_path / "out" / MANIFEST).stat().st_ino
    run.take(1)
    assert (tmp_path / "out" / MANIFEST).stat().st_ino == inode
    run.end()


def test_lines_are_merged_under_one_header(tmp_path: File) -> None:
    sink = FileSink(hg.Sink(format="csv", path=str(tmp_path), compact=True), "n,word")
    sink.open_to(PRIVATE)
    files = []
    for train, lines in enumerate((["1,a", "n,word"], ["2,b"])):
        files.append(tmp_path / f"{train:012d}-{train:012d}.csv")
        sink.write(pa.table({"line": lines}), files[-1])
    temporary, final = merged(sink, files, tmp_path, lambda: None)
    assert temporary.read_text() == "n,word\n1,a\nn,word\n2,b\n"
    assert final.name == "000000000000-000000000001.csv"


def test_results_that_cannot_be_merged_wait_and_concern_their_query_alone(
    tmp_path: File, caplog: pytest.LogCaptureFixture
) -> None:
    run = Run(tmp_path, hg.Sink(path=str(tmp_path / "out"), commit_every_s=60.0))
    run.take(0)
    hidden, aside = tmp_path / "out" / "_unfinished", tmp_path / "aside"
    hidden.rename(aside)
    hidden.write_bytes(b"")  # not even root can write there
    for _ in range(2):
        run.publisher.publish(["q"])
    assert caplog.text.count("query 'q': its results cannot become visible, and it is tried") == 1
    assert not run.publisher.has_ended("q")
    hidden.unlink()
    aside.rename(hidden)
    run.publisher.publish(["q"])
    assert numbers_in(tmp_path / "out") == Counter(number for number, _ in ROWS[0])
    assert run.publisher.has_ended("q")
    run.end()
