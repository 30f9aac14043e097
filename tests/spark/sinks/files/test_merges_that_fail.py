"""Merges that fail or overtake a change of the sink lose no row and leave no file behind."""

from collections import Counter
from contextlib import suppress
from pathlib import Path as File

import pyarrow as pa
import pytest
from crash import Crash, CrashAt
from publisher_run import ROWS, Run, numbers_in

import headgate as hg
from headgate.access import PRIVATE
from headgate.result_files import visible
from headgate.spark.engine.recovery import recover
from headgate.spark.journal.intents import Intents
from headgate.spark.journal.journal import Journal
from headgate.spark.sinks.files import compaction
from headgate.spark.sinks.files.file_sink import FileSink
from headgate.spark.sinks.files.publisher import Publisher
from headgate.spark.sinks.files.renames import Renames


@pytest.fixture(autouse=True)
def _few_files_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "FEW", 3)
    monkeypatch.setattr(compaction, "TIERS", 1)


def numbers_of(*trains: int) -> Counter[int]:
    return Counter(number for train in trains for number, _ in ROWS[train])


def sink_over(folder: File, sink: hg.Sink) -> FileSink:
    other = FileSink(sink)
    other.open_to(PRIVATE)
    other.gather(hg.Sink(path=str(folder), compact=sink.compact))
    return other


@pytest.mark.parametrize("partition_by", [(), ("word",)])
def test_results_with_other_columns_become_visible_one_by_one(
    tmp_path: File, partition_by: tuple[str, ...]
) -> None:
    """The table that a query joins has other columns since the restart."""
    sink = hg.Sink(path=str(tmp_path / "out"), commit_every_s=60.0, partition_by=partition_by)
    run = Run(tmp_path, sink, name=lambda column, value: f"{column}={value}")
    run.take(0)
    run.put(1, pa.table({"n": [8, 9], "word": ["a", "b"], "more": [1.0, 2.0]}))
    run.take(2)
    run.publisher.publish(["q"])
    assert run.sink.collected is not None
    assert run.sink.collected.waiting() == []
    names = sorted(File(name).name for name in visible(tmp_path / "out"))
    assert names[-1] == "000000000002-000000000002.parquet"
    assert numbers_in(tmp_path / "out") == numbers_of(0, 2) + Counter([8, 9])
    run.end()


def test_a_merge_that_fails_leaves_no_hidden_file(tmp_path: File) -> None:
    run = Run(tmp_path, hg.Sink(path=str(tmp_path / "out"), commit_every_s=60.0))
    run.take(0)
    run.take(1)
    (damaged,) = (tmp_path / "out" / "_collected").glob("*1-*")
    damaged.write_bytes(b"")
    for _ in range(2):
        run.publisher.publish(["q"])
    assert list((tmp_path / "out" / "_unfinished").iterdir()) == []
    assert len(list((tmp_path / "out" / "_collected").iterdir())) == 2
    run.end()


def test_collected_results_whose_folder_is_away_for_a_while_become_visible_afterwards(
    tmp_path: File, caplog: pytest.LogCaptureFixture
) -> None:
    folder, aside = tmp_path / "out", tmp_path / "aside"
    run = Run(tmp_path, hg.Sink(path=str(folder), commit_every_s=60.0))
    run.take(0)
    folder.rename(aside)
    run.publisher.publish(["q"])
    assert "query 'q': its results cannot become visible, and it is tried again" in caplog.text
    aside.rename(folder)
    run.publisher.publish(["q"])
    assert numbers_in(folder) == numbers_of(0)
    run.end()


def test_what_a_merge_has_replaced_is_not_forgotten_while_its_folder_is_away(
    tmp_path: File,
) -> None:
    folder, aside = tmp_path / "out", tmp_path / "aside"
    sink = hg.Sink(path=str(folder), commit_every_s=60.0)
    first = Run(tmp_path, sink, CrashAt("merge journalled", 0))
    with suppress(Crash):
        first()
    first.end()
    folder.rename(aside)
    journal = Journal(tmp_path / "state")
    intents = Intents(journal)
    renames = Renames(intents, lambda point: None)
    Publisher(intents, renames, {}, lambda point: None).remove_replaced()
    journal.close()
    aside.rename(folder)
    second = Run(tmp_path, sink)
    second(4)
    assert numbers_in(folder) == numbers_of(0, 1, 2, 3)
    second.end()


def test_a_sink_that_is_replaced_during_a_compaction_keeps_every_line_of_the_manifest(
    tmp_path: File,
) -> None:
    folder = tmp_path / "out"
    sink = hg.Sink(path=str(folder), compact=True)

    def replace_sink(point: str) -> None:
        if point == "files merged" and run.sinks["q"] is run.sink:
            newer = sink_over(folder, sink)
            newer.follow(run.sink)
            run.sinks["q"] = newer
            run.take(3)

    run = Run(tmp_path, sink, replace_sink)
    for train in range(3):
        run.take(train)
    run.publisher.compact()
    assert run.sinks["q"] is not run.sink
    assert numbers_in(folder) == numbers_of(0, 1, 2, 3)
    for train in range(4, 8):
        run.take(train)
        run.publisher.compact()
    assert numbers_in(folder) == numbers_of(*range(8))
    run.end()


@pytest.mark.parametrize("point", ["merge journalled", "step journalled"])
def test_the_next_version_of_a_query_begins_after_a_crash_of_the_one_before(
    tmp_path: File, point: str
) -> None:
    first = Run(tmp_path, hg.Sink(path=str(tmp_path / "out"), compact=True), CrashAt(point, 0))
    with suppress(Crash):
        first()
    first.end()
    sink = hg.Sink(path=str(tmp_path / "out.v2"), compact=True)
    journal, newer = Journal(tmp_path / "state"), sink_over(tmp_path / "out.v2", sink)
    assert recover(journal, {"q": newer}) == (1, [])
    journal.close()
    trains = (0,) if point == "step journalled" else (0, 1, 2)
    assert numbers_in(tmp_path / "out") == numbers_of(*trains)
    assert not list(visible(tmp_path / "out.v2"))
