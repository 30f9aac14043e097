"""Dead letters: each is written once, and counted with the train that it came with."""

import json
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from driver_reads import schema_of
from pyspark.sql import SparkSession

from headgate import Stream
from headgate.spark.journal.cursors import Cursors
from headgate.spark.journal.journal import Journal
from headgate.spark.journal.journal_rows import NewLetters, NewTrain, Train
from headgate.spark.log.byte_cache import ByteCache
from headgate.spark.log.dead_letters import Letter, LetterFile, letter_counts
from headgate.spark.log.stream_log import DRIVER_TUPLES, StreamLog
from headgate.spark.sources.structured_streaming import start_ingest


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    journal = Journal(tmp_path / "state")
    yield journal
    journal.close()


def letters_of(*records: str) -> list[Letter]:
    return [Letter("here", record, "malformed") for record in records]


def records_in(file: LetterFile) -> list[str]:
    return [json.loads(line)["record"] for line in file.path.read_text().splitlines()]


def test_letters_that_the_journal_does_not_have_are_written_anew(
    journal: Journal, tmp_path: Path
) -> None:
    file = LetterFile(tmp_path / "state", "s", journal)
    assert file.write([]) is None
    assert not file.path.exists()
    first = file.write(letters_of("a", "b"))
    assert first is not None
    journal.add_trains([], letters=[first])
    file.write(letters_of("c", "d", "e"))  # then the process dies
    file = LetterFile(tmp_path / "state", "s", journal)
    file.sweep()
    assert records_in(file) == ["a", "b"]
    file.write(letters_of("x"))  # the journal's disk is full
    again = file.write(letters_of("c"))
    assert again is not None
    journal.add_trains([], letters=[again])
    assert records_in(LetterFile(tmp_path / "state", "s", journal)) == ["a", "b", "c"]
    assert letter_counts(journal) == {"s": 3}


@pytest.mark.parametrize("left", ["", "a\n"])
def test_letters_that_somebody_takes_away_are_still_counted(
    journal: Journal, tmp_path: Path, left: str
) -> None:
    file = LetterFile(tmp_path / "state", "s", journal)
    first = file.write(letters_of("a" * 1000))
    assert first is not None
    journal.add_trains([], letters=[first])
    file.path.write_text(left)
    for _ in range(2):  # the first time the process dies
        new = LetterFile(tmp_path / "state", "s", journal).write(letters_of("b"))
    assert new is not None
    journal.add_trains([], letters=[new])
    assert file.path.read_text().removeprefix(left).count("\n") == 1
    assert letter_counts(journal) == {"s": 2}


def test_letters_of_a_run_that_did_not_count_them_stay(tmp_path: Path) -> None:
    state = tmp_path / "state"
    (state / "dead-letters").mkdir(parents=True)
    (state / "dead-letters" / "s.jsonl").write_text('{"record": "old"}\n')
    journal = Journal(state)
    Cursors(journal).remember("q", "SELECT 1", "s")
    journal.close()
    with sqlite3.connect(state / "journal.db") as db:  # as older versions wrote it
        db.execute("ALTER TABLE trains DROP COLUMN first_letter")
        db.execute("DROP TABLE letters")
        db.execute("DROP TABLE beginnings")
    db.close()
    journal = Journal(state)
    new = LetterFile(state, "s", journal).write(letters_of("new"))
    assert new is not None
    journal.add_trains([NewTrain("s", Train(0, 5, 10, 0.0, 0.0), 0)], letters=[new])
    Cursors(journal).remember("q", "SELECT 1", "s")
    account = Cursors(journal).accounts()["q"]
    assert records_in(LetterFile(state, "s", journal)) == ["old", "new"]
    journal.close()
    assert (account.arrived, account.queued, account.dead_lettered) == (6, 5, 1)


def test_a_query_counts_the_letters_since_its_first_train(journal: Journal) -> None:
    for number in range(3):
        train = NewTrain("s", Train(number, 10, 10, 0.0, 0.0), number)
        journal.add_trains([train], letters=[NewLetters("s", 2, 0)])
        Cursors(journal).remember(f"q{number}", "SELECT 1", "s")
        journal.add_trains([], letters=[NewLetters("s", 1, 0), NewLetters("t", 1, 0)])
        journal.drop_trains("s", number + 1)
    Cursors(journal).remember("last", "SELECT 1", "s")
    Cursors(journal).remember("both", "SELECT 2", "timeline", ("s", "t"))
    journal.add_trains([], letters=[NewLetters("s", 4, 0), NewLetters("t", 5, 0)])
    accounts = Cursors(journal).accounts()
    dead = {query: account.dead_lettered for query, account in accounts.items()}
    assert dead == {"q0": 13, "q1": 10, "q2": 7, "last": 4, "both": 9}
    assert accounts["q1"].arrived == 20 + 10
    Cursors(journal).forget("q1")
    Cursors(journal).remember("q1", "SELECT 1", "s")
    assert Cursors(journal).accounts()["q1"].dead_lettered == 0


JSON = ['{"i": 1, "t": "a"}', "nonsense", '{"i": "x", "t": "b"}', '{"t": "ü"}', '{"i": 5', "{}"]
JSON += ["nonsense"] * 2 + ['[{"i": 1}, {"i": 2}]'] + ['[{"i": 1}, {"i": "x"}]'] * 2
CSV = ["1,a", "x,b", "3", "4,c", "5,e,f", "6,ü"]


def ingested(
    session: SparkSession,
    state: Path,
    stream: Stream,
    journal: Journal,
    batches: int,
    *,
    large: bool,
) -> StreamLog:
    """Return the log once Structured Streaming has committed so many batches."""
    log = StreamLog(
        state, "s", journal, schema_of(session, stream.schema), ByteCache(lambda: 1 << 20)
    )
    log.expected_tuples = DRIVER_TUPLES + 1 if large else 0
    query = start_ingest(
        session, stream, log, state, lambda _: None, lambda: 0.0, threading.Event()
    )
    ends_at_s = time.monotonic() + 60
    commits = state / "checkpoints" / "s" / "commits"
    while not (commits / str(batches - 1)).exists():
        assert query.isActive, query.exception()
        assert time.monotonic() < ends_at_s
        time.sleep(0.02)
        log.expected_tuples = DRIVER_TUPLES + 1 if large else 0
    query.stop()
    return log


def stream_over(folder: Path, kind: str, **options: str) -> Stream:
    source_options = {"path": str(folder), "maxFilesPerTrigger": "1", **options}
    return Stream(
        name="s",
        format=kind,
        options=source_options,
        schema="i INT, t STRING",
        trigger_s=0.01,
        ingest="spark",
    )


def rows_of(log: StreamLog) -> list[tuple[Any, Any]]:
    rows = log.table(0, log.next_number).to_pylist() if log.next_number else []
    return sorted(((row["i"], row["t"]) for row in rows), key=str)


@pytest.mark.spark
@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize(
    ("kind", "lines", "bad"),
    [("json", JSON, {1, 2, 4, 6, 7, 9, 10}), ("csv", CSV, {1, 2, 4})],
)
def test_what_structured_streaming_cannot_read_is_a_letter_and_no_row(
    session: SparkSession, journal: Journal, tmp_path: Path, kind: str, lines: list[str],
    bad: set[int], large: bool,
) -> None:  # fmt: skip
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "a").write_text("\n".join(lines) + "\n")
    stream = stream_over(folder, kind)
    log = ingested(session, tmp_path / "state", stream, journal, 1, large=large)
    (folder / "b").write_text("\n".join(lines[n] for n in sorted(bad)) + "\n")
    log = ingested(session, tmp_path / "state", stream, journal, 2, large=large)
    dead = [lines[n] for n in sorted(bad)]
    assert records_in(log.letters) == dead * 2
    letters = [json.loads(line) for line in log.letters.path.read_text().splitlines()]
    assert {letter["reason"] for letter in letters} == {"malformed"}
    places = [f"batch {n}, file:{folder}/{'ab'[n]}" for n in (0, 1)]
    assert [letter["place"] for letter in letters] == [place for place in places for _ in dead]
    (folder / "a").write_text("\n".join(line for n, line in enumerate(lines) if n not in bad))
    (folder / "b").unlink()
    whole = session.read.format(kind).options(**stream.options).schema(stream.schema).load()
    assert rows_of(log) == sorted(((row.i, row.t) for row in whole.collect()), key=str)
    assert (letter_counts(journal), log.next_number) == ({"s": 2 * len(bad)}, 1)


@pytest.mark.spark
@pytest.mark.parametrize("large", [False, True])
def test_a_file_of_xml_with_malformed_records_is_a_letter_and_the_others_are_read(
    session: SparkSession, journal: Journal, tmp_path: Path, large: bool
) -> None:
    folder = tmp_path / "source"
    folder.mkdir()
    bad = "<row><i>two</i><t>b</t></row>"
    rows = ["<row><i>1</i><t>a</t></row>", bad, "<row><i>3</i></row>", bad]
    (folder / "a").write_text(f"<rows>{''.join(rows)}</rows>")
    log = ingested(
        session,
        tmp_path / "state",
        stream_over(folder, "xml", rowTag="row"),
        journal,
        1,
        large=large,
    )
    assert rows_of(log) == [(1, "a"), (3, None)]
    (letter,) = map(json.loads, log.letters.path.read_text().splitlines())
    assert letter == {"place": f"batch 0, file:{folder}/a", "record": "", "reason": "malformed"}
    assert letter_counts(journal) == {"s": 1}


@pytest.mark.spark
@pytest.mark.parametrize("large", [False, True])
def test_a_batch_of_letters_alone_that_comes_again_adds_none(
    session: SparkSession, journal: Journal, tmp_path: Path, large: bool
) -> None:
    folder, state = tmp_path / "source", tmp_path / "state"
    folder.mkdir()
    (folder / "a").write_text("nonsense\n")
    ingested(session, state, stream_over(folder, "json"), journal, 1, large=large)
    (state / "checkpoints/s/commits/0").unlink()  # Spark dies before it has recorded the batch
    (state / "checkpoints/s/commits/.0.crc").unlink()
    log = ingested(session, state, stream_over(folder, "json"), journal, 1, large=large)
    assert records_in(log.letters) == ["nonsense"]
    assert letter_counts(journal) == {"s": 1}


@pytest.mark.spark
@pytest.mark.parametrize(
    ("options", "rows"),
    [({"mode": "DROPMALFORMED"}, [(1, "a")]), ({"MODE": "permissive"}, [(1, "a"), (None, None)])],
)
def test_a_user_who_says_himself_what_becomes_of_malformed_records_has_his_way(
    session: SparkSession, journal: Journal, tmp_path: Path, options: dict[str, str],
    rows: list[tuple[Any, Any]],
) -> None:  # fmt: skip
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "a").write_text('{"i": 1, "t": "a"}\nnonsense\n')
    stream = stream_over(folder, "json", **options)
    log = ingested(session, tmp_path / "state", stream, journal, 1, large=False)
    assert rows_of(log) == rows
    assert not log.letters.path.exists()


@pytest.mark.spark
@pytest.mark.parametrize("large", [False, True])
def test_a_file_that_is_one_record_is_one_letter_with_its_name(
    session: SparkSession, journal: Journal, tmp_path: Path, large: bool
) -> None:
    folder = tmp_path / "source"
    folder.mkdir()
    for name, value in (("a", "1"), ("b", '"x"'), ("c", '"y"')):
        (folder / name).write_text(f'[{{"i": 1,\n"t": "a"}},\n{{"i": {value}}}]')
    stream = stream_over(folder, "json", multiLine="true", maxFilesPerTrigger="3")
    log = ingested(session, tmp_path / "state", stream, journal, 1, large=large)
    assert rows_of(log) == [(1, "a"), (1, None)]
    letters = [json.loads(line) for line in log.letters.path.read_text().splitlines()]
    places = sorted(letter["place"] for letter in letters)
    assert places == [f"batch 0, file:{folder}/{name}" for name in "bc"]
    assert records_in(log.letters) == ["", ""]
