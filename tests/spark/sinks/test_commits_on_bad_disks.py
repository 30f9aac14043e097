"""Commits while a disk fails: other queries go on, and no attempt leaves files behind."""

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path as File

import numpy as np
import pyarrow as pa
import pytest

from headgate.access import PRIVATE
from headgate.errors import SinkUnwritable
from headgate.extensions import Options, SinkContext
from headgate.model.network.network import Path
from headgate.model.network.operator import Operator
from headgate.model.query import Query, Sink
from headgate.spark.journal.cursors import Cursors
from headgate.spark.journal.journal import Journal
from headgate.spark.output import Output
from headgate.spark.sinks.callback import Callback
from headgate.spark.sinks.commit import Commits
from headgate.spark.sinks.files.file_sink import FileSink
from headgate.spark.sinks.outbox import Outbox
from headgate.spark.work import Work

TABLE = pa.table({"a": [1, 2, 3]})
OUTPUT = Output(TABLE, np.zeros(3))


def path_of(name: str, folder: File) -> Path:
    query = Query(name=name, sql="x", query_class="H", sink=Sink(path=str(folder / name)))
    return Path(query=query, stream="s", operators=(Operator(kind="project", expressions=("a",)),))


class World:
    """Queries with results folders, and a journal that another program can break."""

    def __init__(
        self, folder: File, *names: str, reached: Callable[[str], None] = lambda point: None
    ) -> None:
        self.folder, self.journal = folder, Journal(folder / "state")
        self.paths = tuple(path_of(name, folder) for name in names)
        self.sinks = {path.query.name: FileSink(path.query.sink) for path in self.paths}
        for path in self.paths:
            self.sinks[path.query.name].open_to(PRIVATE)
            Cursors(self.journal).remember(path.query.name, "x", "s")
        self.commits = Commits(self.journal, self.sinks, reached)

    def take(self, train: int) -> dict[str, Exception]:
        work = Work(self.paths, train, train + 1, 3)
        return dict(self.commits(work, [(path, OUTPUT) for path in self.paths]))

    def execute(self, statement: str) -> None:
        with closing(sqlite3.connect(self.folder / "state" / "journal.db")) as db:
            db.execute(statement)
            db.commit()


@pytest.mark.parametrize("others", [1, 5])
def test_a_result_that_cannot_be_flushed_concerns_its_query_alone(
    tmp_path: File, others: int
) -> None:
    names = [f"q{number}" for number in range(others)]

    def lose_a_disk(point: str) -> None:
        if point == "result written" and (tmp_path / "lost").is_dir():
            shutil.rmtree(tmp_path / "lost")

    world = World(tmp_path, "lost", *names, reached=lose_a_disk)
    (error,) = world.take(0).values()
    assert isinstance(error, SinkUnwritable)
    assert Cursors(world.journal).train_of("lost") == 0
    for name in names:
        assert Cursors(world.journal).train_of(name) == 1
        assert len(list((tmp_path / name).glob("*.parquet"))) == 1
    world.journal.close()


def test_results_that_the_journal_does_not_take_leave_no_hidden_files(tmp_path: File) -> None:
    world = World(tmp_path, "q")
    world.execute(
        "CREATE TRIGGER full BEFORE INSERT ON intents BEGIN SELECT RAISE(ABORT, 'full'); END"
    )
    for _ in range(2):
        with pytest.raises(sqlite3.Error, match="full"):
            world.take(0)
    assert list((tmp_path / "q" / "_unfinished").iterdir()) == []
    world.execute("DROP TRIGGER full")
    assert world.take(0) == {}
    assert len(list((tmp_path / "q").glob("*.parquet"))) == 1
    world.journal.close()


def test_a_hidden_result_is_shown_by_the_sink_that_takes_the_place_of_its_own(
    tmp_path: File,
) -> None:
    keys: list[str] = []
    folder, aside = tmp_path / "outbox", tmp_path / "aside"

    def reached(point: str) -> None:
        if point == "step journalled":
            folder.rename(aside)

    def outbox() -> Outbox:
        context = SinkContext(
            query="q", format="callback", options=Options(), schema=pa.schema([]),
            deliver=lambda table, key: keys.append(key),
        )  # fmt: skip
        return Outbox("q", "callback", folder, Callback(context), lambda point: None)

    world = World(tmp_path, "q", reached=reached)
    older, newer = outbox(), outbox()
    world.sinks["q"] = older
    assert world.take(0) == {}
    assert world.commits.renames.hides("q")
    older.close()
    newer.follow(older)
    world.sinks["q"] = newer
    world.commits.renames.hand_to("q", newer)
    newer.resume()
    aside.rename(folder)
    world.commits.renames.try_again()
    assert not world.commits.renames.hides("q")
    newer.close()
    newer.join()
    assert keys == ["q/0-0"]
    world.journal.close()
