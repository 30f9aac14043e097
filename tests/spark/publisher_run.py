"""A query whose results are collected and compacted, without a Spark session."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path as File

import numpy as np
import pyarrow as pa
from pyspark.sql.types import LongType, StringType, StructField, StructType

import headgate as hg
from headgate.access import PRIVATE
from headgate.model.network.network import Path
from headgate.model.network.operator import Operator
from headgate.result_files import visible
from headgate.spark.engine.recovery import recover
from headgate.spark.journal.cursors import Cursors
from headgate.spark.journal.journal import Journal
from headgate.spark.output import Output
from headgate.spark.sinks.commit import Commits
from headgate.spark.sinks.files.file_sink import FileSink
from headgate.spark.sinks.files.publisher import Publisher
from headgate.spark.work import Work

TRAINS = 10
SCHEMA = StructType([StructField("n", LongType()), StructField("word", StringType())])
WORDS = ("plain", "a b/c=d%", "", None)
ROWS = {
    train: [(train * 4 + row, word) for row, word in enumerate(WORDS)] for train in range(TRAINS)
}
EXPECTED = Counter(number for rows in ROWS.values() for number, _ in rows)


def text_of(rows: list[tuple[int, str | None]]) -> pa.Table:
    return pa.table({"line": [json.dumps({"n": number, "word": word}) for number, word in rows]})


class Run:
    """A query that commits a result for each train, until it is done or dies."""

    def __init__(
        self,
        folder: File,
        sink: hg.Sink,
        reached: Callable[[str], None] = lambda point: None,
        name: Callable[[str, str | None], str] | None = None,
    ) -> None:
        self.folder, self.journal = folder / "out", Journal(folder / "state")
        query = hg.Query(name="q", sql="x", query_class="H", sink=sink)
        operators = (Operator(kind="project", expressions=("n", "word")),)
        self._path = Path(query=query, stream="s", operators=operators)
        Cursors(self.journal).remember("q", "x", "s")
        schema = SCHEMA if sink.format == "parquet" else None
        self.sink = FileSink(sink, schema=schema, partition_name=name)
        self.sink.open_to(PRIVATE)
        self.sink.gather(sink)
        self.sinks = {"q": self.sink}
        self.seen: dict[File, tuple[bytes, int]] = {}
        _, late = recover(self.journal, self.sinks, reached)
        assert not late
        commits = Commits(self.journal, self.sinks, reached)
        self.commit = commits
        self.publisher = Publisher(commits.intents, commits.renames, self.sinks, reached)
        self.publisher.remove_replaced()
        assert self.sink.collected is not None
        replaced = {file for file, _ in commits.intents.replaced()}
        self.sink.collected.resume(replaced)

    def __call__(self, trains: int = TRAINS) -> None:
        for train in range(Cursors(self.journal).train_of("q") or 0, trains):
            self.take(train)
            if train % 2:
                self.publisher.publish(["q"])
            self.publisher.compact()
            self.look()
        self.publisher.publish(["q"])

    def take(self, train: int) -> None:
        rows = ROWS[train]
        self.put(train, text_of(rows) if self.sink.format == "json" else pa.table(
            {"n": pa.array([n for n, _ in rows]), "word": pa.array([word for _, word in rows])}
        ))  # fmt: skip

    def put(self, train: int, table: pa.Table) -> None:
        """Commit a table as the results of a train."""
        work = Work((self._path,), train, train + 1, table.num_rows)
        assert self.commit(work, [(self._path, Output(table, np.zeros(table.num_rows)))]) == {}

    def look(self) -> None:
        """Check that no file that was visible once has changed."""
        for name in visible(self.folder):
            file = self.folder / name
            facts = file.read_bytes(), file.stat().st_mtime_ns
            assert self.seen.setdefault(file, facts) == facts

    def end(self) -> None:
        self.journal.close()


def numbers_in(folder: File) -> Counter[int]:
    dataset = hg.results(folder)
    return Counter(dataset.to_table(columns=["n"])["n"].to_pylist() if dataset.files else ())
