"""Dead letters: each once, counted with the train that they came with."""

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate.spark.dead_letters import Letter, LetterFile
from headgate.spark.journal import Journal, NewLetters, NewTrain, Train


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    journal = Journal(tmp_path / "state")
    yield journal
    journal.close()


def letters_of(*records: str) -> list[Letter]:
    return [Letter("here", record, "malformed") for record in records]


def kept(file: LetterFile) -> list[str]:
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
    file.write(letters_of("c", "d", "e"))  # and then the process dies
    file = LetterFile(tmp_path / "state", "s", journal)
    assert kept(file) == ["a", "b"]
    file.write(letters_of("x"))  # the journal's disk is full
    again = file.write(letters_of("c"))
    assert again is not None
    journal.add_trains([], letters=[again])
    assert kept(LetterFile(tmp_path / "state", "s", journal)) == ["a", "b", "c"]
    assert journal.letters() == {"s": 3}


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
    assert journal.letters() == {"s": 2}


def test_letters_of_a_run_that_did_not_count_them_stay(tmp_path: Path) -> None:
    state = tmp_path / "state"
    (state / "dead-letters").mkdir(parents=True)
    (state / "dead-letters" / "s.jsonl").write_text('{"record": "old"}\n')
    journal = Journal(state)
    journal.remember_query("q", "SELECT 1", "s")
    journal.close()
    with sqlite3.connect(state / "journal.db") as db:  # as it was then
        db.execute("ALTER TABLE trains DROP COLUMN first_letter")
        db.execute("DROP TABLE letters")
        db.execute("DROP TABLE beginnings")
    db.close()
    journal = Journal(state)
    new = LetterFile(state, "s", journal).write(letters_of("new"))
    assert new is not None
    journal.add_trains([NewTrain("s", Train(0, 5, 10, 0.0, 0.0), 0)], letters=[new])
    journal.remember_query("q", "SELECT 1", "s")
    account = journal.accounts()["q"]
    assert kept(LetterFile(state, "s", journal)) == ["old", "new"]
    journal.close()
    assert (account.arrived, account.queued, account.dead_lettered) == (6, 5, 1)


def test_a_query_counts_the_letters_since_its_first_train(journal: Journal) -> None:
    for number in range(3):
        train = NewTrain("s", Train(number, 10, 10, 0.0, 0.0), number)
        journal.add_trains([train], letters=[NewLetters("s", 2, 0)])
        journal.remember_query(f"q{number}", "SELECT 1", "s")
        journal.add_trains([], letters=[NewLetters("s", 1, 0), NewLetters("t", 1, 0)])
        journal.drop_trains("s", number + 1)
    journal.remember_query("last", "SELECT 1", "s")
    journal.remember_query("both", "SELECT 2", "timeline", ("s", "t"))
    journal.add_trains([], letters=[NewLetters("s", 4, 0), NewLetters("t", 5, 0)])
    accounts = journal.accounts()
    dead = {query: each.dead_lettered for query, each in accounts.items()}
    assert dead == {"q0": 13, "q1": 10, "q2": 7, "last": 4, "both": 9}
    assert accounts["q1"].arrived == 20 + 10
    journal.forget_query("q1")
    journal.remember_query("q1", "SELECT 1", "s")
    assert journal.accounts()["q1"].dead_lettered == 0
