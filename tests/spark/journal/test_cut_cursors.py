"""A query that had another text before it is cut goes on where it stands."""

from pathlib import Path

from headgate.model.network.network import FIRST
from headgate.spark.journal.cursors import Cursors
from headgate.spark.journal.cut_cursors import CutCursors
from headgate.spark.journal.journal import Journal
from headgate.spark.journal.journal_rows import NewTrain, Train


def test_the_first_segment_of_a_later_version_does_not_begin_anew(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    cursors = Cursors(journal)
    cursors.remember("q", "old", "s")
    trains = [Train(number, 10, 100, float(number), float(number)) for number in range(4)]
    journal.add_trains([NewTrain("s", train, train.number) for train in trains])
    cursors.remember("q", "new", "s", version=2, since_s=None)
    with journal.transaction() as db:
        db.execute("UPDATE cursors SET next_train = 3, tuples_in = 30 WHERE query = 'q'")
    assert CutCursors(journal).cut("q", "new, first")
    assert cursors.remember("q" + FIRST, "new, first", "s", version=2).train == 3
    assert cursors.remember("q" + FIRST, "new, first", "s", version=2).train == 3
    journal.close()
