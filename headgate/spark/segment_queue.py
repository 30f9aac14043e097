"""What waits between two segments of a query: in memory, or on disk where memory is short."""

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path as File

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from headgate.model.stream import ARRIVED_AT
from headgate.spark.files import remove
from headgate.spark.journal import Train
from headgate.spark.jvm.arrow_frames import frame_of
from headgate.spark.stream_log import Trains
from headgate.spark.types import arrow_schema


@dataclass(frozen=True)
class SourceRange:
    """Trains first, ..., end − 1 of the source, which had so many tuples."""

    first: int
    end: int
    tuples: int

    def and_then(self, later: "SourceRange") -> "SourceRange":
        return SourceRange(self.first, later.end, self.tuples + later.tuples)


@dataclass
class Queued:
    """A train of the queue; `table` is None while it lies on disk, where it takes so much."""

    train: Train
    source: SourceRange
    table: pa.Table | None
    disk_bytes: int = 0


class QueuedTrains(Trains):
    """Trains of a queue: what a job reads is handed over, not looked up."""

    def frame(self, session: SparkSession) -> DataFrame:
        return frame_of(session, self.table(), self.schema)

    def mean_arrived_at_s(self) -> float:
        return float(np.mean(self.table()[ARRIVED_AT].to_numpy()))


class SegmentQueue:
    """The trains that the first segment of a query has made and the rest has not committed.

    Nothing of it outlives the run: every train knows which trains of the source it comes from, the
    rest commits in terms of those, and the next run begins behind the last that was committed.
    Trains of the source of which nothing came count with the train after them.

    Args:
        folder: where trains lie while memory is short.
    """

    def __init__(self, stream: str, schema: StructType, folder: File) -> None:
        self.stream, self.schema = stream, schema
        self.arrow_schema = arrow_schema(schema)
        self.next_number = 0
        self.tuple_bytes = 0.0
        self._folder = folder
        self._queued: deque[Queued] = deque()
        self._nothing: SourceRange | None = None
        self._lock = threading.RLock()
        remove(folder)

    @property
    def bytes(self) -> int:
        """What the trains take in memory."""
        with self._lock:
            return sum(each.table.nbytes for each in self._queued if each.table is not None)

    @property
    def spilled_bytes(self) -> int:
        """What the trains take on disk."""
        with self._lock:
            return sum(each.disk_bytes for each in self._queued)

    @property
    def held_from(self) -> int | None:
        """The first train of the source whose results are not certain; None where all are."""
        with self._lock:
            if self._queued:
                return self._queued[0].source.first
            return None if self._nothing is None else self._nothing.first

    def append(self, table: pa.Table, source: SourceRange) -> Train | None:
        """Takes in what the first segment made of trains of the source; None: that is nothing."""
        with self._lock:
            if not table.num_rows:
                before = self._nothing
                self._nothing = source if before is None else before.and_then(source)
                return None
            if self._nothing is not None:
                source, self._nothing = self._nothing.and_then(source), None
            arrived_s = table[ARRIVED_AT].to_numpy()
            train = Train(
                number=self.next_number,
                tuples=table.num_rows,
                bytes=table.nbytes,
                head_arrived_at_s=float(np.min(arrived_s)),
                mean_arrived_at_s=float(np.mean(arrived_s)),
            )
            self._queued.append(Queued(train, source, table.cast(self.arrow_schema)))
            self.tuple_bytes = table.nbytes / table.num_rows
            self.next_number += 1
            return train

    def trains(self, first: int, end: int, tuples: int) -> Trains:
        """Gives the trains first, ..., end − 1, which have so many tuples."""
        return QueuedTrains(self.schema, (), tuples, lambda: self._table(first, end))

    def source_of(self, first: int, end: int) -> SourceRange:
        """Gives what the trains first, ..., end − 1 come from."""
        with self._lock:
            chosen = [each.source for each in self._queued if first <= each.train.number < end]
        whole = chosen[0]
        for each in chosen[1:]:
            whole = whole.and_then(each)
        return whole

    def passed(self, before: int) -> None:
        """Forgets the trains below a number: their results are certain."""
        with self._lock:
            while self._queued and self._queued[0].train.number < before:
                gone = self._queued.popleft()
                if gone.table is None:
                    remove(self._file(gone.train.number))

    def clear(self) -> None:
        """Forgets everything: the query is gone."""
        self.passed(self.next_number)
        self._nothing = None

    def settle(self, commit: Callable[[SourceRange], None]) -> None:
        """Has trains of the source of which nothing came committed, once nothing waits before."""
        with self._lock:
            if self._nothing is not None and not self._queued:
                commit(self._nothing)
                self._nothing = None

    def spill(self) -> None:
        """Brings what waits to the disk; the oldest train stays, since it is next."""
        with self._lock:
            for each in list(self._queued)[1:]:
                if each.table is not None:
                    self._folder.mkdir(parents=True, exist_ok=True)
                    file = self._file(each.train.number)
                    pq.write_table(each.table, file, compression="zstd")
                    each.table, each.disk_bytes = None, file.stat().st_size

    def drop(self, before: int) -> None:
        """Does nothing: what is passed goes when it is certain."""

    def _table(self, first: int, end: int) -> pa.Table:
        with self._lock:
            chosen = [each for each in self._queued if first <= each.train.number < end]
        tables = [
            pq.read_table(self._file(each.train.number)).cast(self.arrow_schema)
            if each.table is None
            else each.table
            for each in chosen
        ]
        return pa.concat_tables(tables).combine_chunks()

    def _file(self, number: int) -> File:
        return self._folder / f"{number:012d}.parquet"
