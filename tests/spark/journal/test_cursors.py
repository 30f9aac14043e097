"""Cursors of queries: accounts that balance at any time, and versions that are cut."""

from pathlib import Path

from headgate.model.network.network import FIRST, REST
from headgate.spark.journal.cursors import Cursors
from headgate.spark.journal.cut_cursors import CutCursors
from headgate.spark.journal.intents import Intents, Result
from headgate.spark.journal.journal import Journal
from headgate.spark.journal.journal_rows import NewTrain, Train


def add_trains(journal: Journal, stream: str, *tuples: int) -> None:
    first = journal.next_train(stream)
    trains = [Train(first + number, count, 1, 0.0, 0.0) for number, count in enumerate(tuples)]
    journal.add_trains([NewTrain(stream, train, train.number) for train in trains])


def consume(journal: Journal, query: str, first: int, end: int, tuples: int, out: int) -> None:
    Intents(journal).intend([Result(query, first, end, tuples, out, out, None, None)])


def test_what_retention_drops_before_a_paused_query_is_missed_at_once(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    cursors = Cursors(journal)
    cursors.remember("q", "x", "s")
    add_trains(journal, "s", 5, 7, 9)
    consume(journal, "q", 0, 1, 5, 2)
    for before, missed in ((1, 0), (2, 7), (3, 16)):
        journal.drop_trains("s", before)
        account = cursors.accounts()["q"]
        assert (account.missed, account.queued) == (missed, 16 - missed)
        assert account.arrived == 21 == 2 + 3 + account.missed + account.queued
    assert cursors.remember("q", "x", "s").missed == 16
    assert cursors.accounts()["q"].missed == 16
    journal.close()


def test_the_next_version_of_a_query_goes_on_where_it_stands_when_it_is_cut(
    tmp_path: Path,
) -> None:
    journal = Journal(tmp_path)
    cursors, cuts = Cursors(journal), CutCursors(journal)
    cursors.remember("q", "x", "s")
    add_trains(journal, "s", 5, 5, 5, 5)
    consume(journal, "q", 0, 1, 5, 4)
    cursors.remember("q", "y", "s", version=2, since_s=None)
    consume(journal, "q", 1, 3, 10, 6)
    # The next run cuts it.
    assert cuts.cut("q", "first of y")
    assert cursors.remember("q" + FIRST, "first of y", "s", version=2).train == 3
    assert cursors.remember("q", "y", "q" + REST, version=2).train == 0
    assert cursors.accounts()["q"].queued == 5
    journal.close()


def test_the_rest_of_a_cut_query_counts_what_it_has_missed(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    cursors, hidden = Cursors(journal), "q" + REST
    cursors.remember("q", "x", "s")
    add_trains(journal, "s", 5, 5)
    consume(journal, "q", 0, 1, 5, 4)
    CutCursors(journal).cut("q", "first")
    cursors.remember("q", "x", hidden)
    add_trains(journal, hidden, 3, 2)
    consume(journal, "q" + FIRST, 1, 2, 5, 5)
    journal.drop_trains(hidden, 1)
    for _ in range(2):
        account = cursors.accounts()["q"]
        assert (account.arrived, account.delivered, account.filtered) == (10, 4, 1)
        assert (account.missed, account.queued) == (3, 2)
        cursors.remember("q", "x", hidden)
    journal.close()
