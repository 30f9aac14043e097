"""The stream log: numbered, durable trains in Parquet files."""

import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql.types import DoubleType, StructField, StructType

from headgate.access import PRIVATE, Access
from headgate.errors import RecoveryRefused, TrainUnreadable
from headgate.model.stream import ARRIVED_AT
from headgate.model.window_ends import NEVER, Times
from headgate.spark.journal.journal import Journal
from headgate.spark.journal.journal_rows import NewLetters, NewTrain, Train
from headgate.spark.jvm.types import arrow_schema
from headgate.spark.log.batches import collected_batch, with_arrival, write_batch
from headgate.spark.log.byte_cache import ByteCache
from headgate.spark.log.corrupt_records import letters_of, readable
from headgate.spark.log.dead_letters import LetterFile
from headgate.spark.log.files import (
    checksum_of,
    flush,
    flush_all,
    put,
    remove,
    size_of,
    verify_train,
)
from headgate.spark.log.parquet_bytes import parquet_of
from headgate.spark.log.trains import NumberedTrains, Trains

ARRIVED = StructField(ARRIVED_AT, DoubleType())

MARK = "_watermark_us"
"""The column in files of a derived stream's trains that holds the watermark before each tuple."""

DRIVER_TUPLES = 100_000
"""A train of up to this many tuples is written in the driver: at 20 000 rows in 3 ms, where a Spark
job takes 110."""


def train_file(folder: Path, number: int) -> Path:
    """Return the path of a train in its stream's folder."""
    return folder / f"{number:012d}.parquet"


class StreamLog:
    """One stream's trains under `state/log/NAME`: files, or folders where Spark wrote them.

    Raises:
        RecoveryRefused: the files do not fit the journal.
    """

    def __init__(
        self,
        state: Path,
        stream: str,
        journal: Journal,
        schema: StructType,
        cache: ByteCache[tuple[str, int]],
        reached: Callable[[str], None] = lambda point: None,
        access: Access = PRIVATE,
    ) -> None:
        self.stream = stream
        self._reached, self._cache, self._access = reached, cache, access
        self.stream_schema = schema
        self.schema = StructType([*schema.fields, ARRIVED])
        self.arrow_schema = arrow_schema(self.schema)
        self._journal = journal
        self._folder = state / "log" / stream
        access.folder(self._folder)
        self.letters = LetterFile(state, stream, journal, reached)
        self.next_number = self.next_to_announce = journal.next_train(stream)
        trains = journal.trains(stream)
        self.bytes, self._counting = sum(train.bytes for train in trains), threading.Lock()
        self.tuple_bytes = 0.0
        """About what a tuple takes in memory; 0 before the first tuple."""
        # The size of the first batch is unknown, so it must not pass through the driver.
        self.expected_tuples = DRIVER_TUPLES + 1
        """How many tuples the next batch of Structured Streaming is assumed to have."""
        self._check(trains)
        if trains:
            self.tuple_bytes = _tuple_bytes(self.path(trains[-1].number))

    def sweep(self) -> None:
        """Remove what a crash has left, once it is decided that nothing refuses to start."""
        numbers = {train.number for train in self._journal.trains(self.stream)}
        for path in self._folder.iterdir():
            # A crash kept the file's batch out of the journal: its source will deliver it again. Or
            # the train was dropped, but its file was not removed yet.
            number = path.name.split(".")[0]
            if not number or (number.isdigit() and int(number) not in numbers):
                remove(path)
        self.letters.sweep()

    def path(self, number: int) -> Path:
        return train_file(self._folder, number)

    def trains(self, first: int, end: int, tuples: int) -> Trains:
        """Return the trains first, ..., end − 1, which have `tuples` tuples."""
        files = [str(self.path(number)) for number in range(first, end)]
        return Trains(
            self.schema, files, tuples, lambda: self.table(first, end), self._first_tuple(first),
            partial(self._verify, first, end), first, end,
        )  # fmt: skip

    def numbered(self, first: int, end: int, tuples: int) -> NumberedTrains:
        """Return the same trains with the number of each tuple in place of its arrival."""
        files = [str(self.path(number)) for number in range(first, end)]

        def table() -> pa.Table:
            rows = self.table(first, end)
            numbers = pa.array(np.arange(rows.num_rows, dtype=np.float64))
            return rows.set_column(rows.column_names.index(ARRIVED_AT), ARRIVED_AT, numbers)

        return NumberedTrains(
            self.schema, files, tuples, table, self._first_tuple(first),
            partial(self._verify, first, end), first, end,
        )  # fmt: skip

    def _first_tuple(self, train: int) -> Callable[[], int]:
        return partial(self._journal.first_tuple, self.stream, train)

    def columns(self, first: int, end: int, names: Sequence[str]) -> pa.Table:
        """Return some columns of the trains first, ..., end − 1; read no others from disk."""
        tables, schema = [], pa.schema([self.arrow_schema.field(name) for name in names])
        for number in range(first, end):
            table = self._cache.find((self.stream, number))
            if table is None:
                self._verify(number, number + 1)
                path = self.path(number)
                table = pq.read_table(path, columns=list(names), partitioning=None)
            tables.append(table.select(schema.names).cast(schema))
        return pa.concat_tables(tables)

    def marks(self, number: int) -> Times:
        """Return the watermark before each tuple of a train of a derived stream."""
        self._verify(number, number + 1)
        with pq.ParquetFile(self.path(number)) as file:
            if MARK not in file.schema_arrow.names:
                return np.full(file.metadata.num_rows, NEVER)
            marks: Times = file.read([MARK], use_threads=False)[MARK].to_numpy()
            return marks

    def table(self, first: int, end: int) -> pa.Table:
        """Return the tuples of the trains first, ..., end − 1."""
        tables = [
            self._cache.get((self.stream, number), partial(self._read, number))
            for number in range(first, end)
        ]
        return tables[0] if len(tables) == 1 else pa.concat_tables(tables).combine_chunks()

    def append(self, batch: DataFrame, source_batch: int, now_s: float) -> Train | None:
        """Append a source's batch as a train, once; return None if it is empty or in the log.

        A small batch passes through the driver, a large one never does; the size of the last batch
        predicts that of the next. Records that Spark could not parse become dead letters.
        """
        if self._journal.has_batch(self.stream, source_batch):
            self.next_number = self._journal.next_train(self.stream)
            return None
        remove(self._temporary())  # of an attempt that has failed: a file, or a folder of Spark's
        table = self._collect(batch)
        if table is None:
            new, letters = self._write_with_spark(batch, source_batch, now_s)
        else:
            self.expected_tuples = table.num_rows
            letters = self.letters.write(letters_of([table], source_batch), source_batch)
            table, new = readable(table), None
            with self._journal.storage:
                if table.num_rows:
                    new = self.stage(with_arrival(table, now_s), source_batch)
                    flush_all(self.staged(new))
        if new is None and letters is None:
            return None
        with self._journal.storage:
            self._journal.add_trains(
                [] if new is None else [new], letters=[] if letters is None else [letters]
            )
        if letters is not None:
            self.letters.added(letters)
        if new is None:
            return None
        self.added(new)
        return new.train

    def unannounced(self) -> list[Train]:
        """Return the trains from `next_to_announce` on, which the scheduler does not have yet.

        If an attempt fails when its batch is in the log, these are more than the last one.
        """
        if self.next_to_announce >= self.next_number:
            return []
        trains = self._journal.trains(self.stream)
        return [train for train in trains if train.number >= self.next_to_announce]

    def _write_with_spark(
        self, batch: DataFrame, source_batch: int, now_s: float
    ) -> tuple[NewTrain | None, NewLetters | None]:
        """Let Spark write a batch, a second time if it has records that could not be parsed."""
        temporary = self._temporary()
        mixed = self._folder / f"{self.next_number:012d}.mixed"
        letters = write_batch(batch, source_batch, now_s, temporary, mixed, self.letters)
        self._access.apply(temporary)
        arrived = pq.read_table(temporary, columns=[ARRIVED_AT])
        self.expected_tuples = arrived.num_rows + (letters.records if letters else 0)
        if not arrived.num_rows:
            remove(temporary)
            return None, letters
        new = self._rename(arrived, temporary, source_batch)
        flush(self._folder)
        self.tuple_bytes = self.tuple_bytes or _tuple_bytes(self.path(new.train.number))
        return new, letters

    def stage(self, table: pa.Table, source_batch: int, marks: Times | None = None) -> NewTrain:
        """Write a train. It counts once it is flushed to disk (`staged`), the journal has it and
        `added` was called. Until then a restart would remove it.

        Args:
            marks: for a derived stream with an event time, the watermark before each tuple.
        """
        table = table.cast(self.arrow_schema)
        temporary = self._temporary()
        whole = table if marks is None else table.append_column(MARK, pa.array(marks))
        self._access.write(temporary, parquet_of(whole))
        new = self._rename(table, temporary, source_batch)
        self.tuple_bytes = table.nbytes / table.num_rows
        self._cache.put((self.stream, new.train.number), table)
        return new

    def staged(self, new: NewTrain) -> list[Path]:
        """Return the paths to flush to disk before the journal has a train."""
        return [self.path(new.train.number), self._folder]

    def added(self, new: NewTrain) -> None:
        """Move on to the next number, now that the journal has this train."""
        self.next_number = new.train.number + 1
        with self._counting:
            self.bytes += new.train.bytes
        self._reached("train journalled")

    def drop(self, before: int) -> None:
        """Remove the trains below a number."""
        gone = self._journal.trains(self.stream, before)
        if gone:
            self._journal.drop_trains(self.stream, before)
            self._cache.drop(lambda key: key[0] == self.stream and key[1] < before)
            with self._counting:
                self.bytes -= sum(train.bytes for train in gone)
            for train in gone:
                self._reached("train dropped")
                remove(self.path(train.number))

    def _temporary(self) -> Path:
        return self._folder / f".{self.next_number:012d}.parquet"

    def _verify(self, first: int, end: int) -> None:
        """Raise TrainUnreadable unless the files of trains are those that were written."""
        for number in range(first, end):
            if (checksum := self._journal.checksum(self.stream, number)) is not None:
                verify_train(self.path(number), self.stream, number, checksum)

    def _read(self, number: int) -> pa.Table:
        self._verify(number, number + 1)
        try:
            # Earlier versions let Spark write INT96, which in nanoseconds ends in 2262.
            table = pq.read_table(
                self.path(number), partitioning=None, coerce_int96_timestamp_unit="us"
            )
        except (pa.ArrowException, OSError) as error:
            raise TrainUnreadable(
                stream=self.stream, train=number, file=str(self.path(number)),
                cause=str(error).splitlines()[0],
            ) from error  # fmt: skip
        return table.select(self.arrow_schema.names).cast(self.arrow_schema).combine_chunks()

    def _check(self, trains: Sequence[Train]) -> None:
        """Raise RecoveryRefused if files and journal do not fit: a train's file has another size,
        or there are newer trains. A crash leaves at most one, which has the next number.
        """
        for train in trains:
            path = self.path(train.number)
            size_bytes = size_of(path) if path.exists() else None
            if size_bytes != train.bytes:
                raise RecoveryRefused(
                    subject=f"train {train.number} of stream '{self.stream}'",
                    expected=f"{train.bytes} bytes in {path}, as the journal says",
                    found="no such file" if size_bytes is None else f"{size_bytes} bytes",
                    fix="restore the log and journal.db from the same copy, or begin with a new"
                    " state directory",
                )

        names = [path.name.split(".")[0] for path in self._folder.iterdir()]
        newest = max((int(name) for name in names if name.isdigit()), default=0)
        if newest > self.next_number:
            raise RecoveryRefused(
                subject=f"stream '{self.stream}'",
                expected=f"no train in {self._folder} after train {self.next_number}, as the"
                " journal says",
                found=f"train {newest}: the journal was set back",
                fix="restore the log and journal.db from the same copy, or begin with a new state"
                " directory. To continue with this journal and deliver rows again, move these"
                " trains away",
            )

    def _collect(self, batch: DataFrame) -> pa.Table | None:
        """Return a batch as a table in the driver; None if it is, or proves, too large for that."""
        if self.expected_tuples > DRIVER_TUPLES:
            return None
        return collected_batch(batch)

    def _rename(self, table: pa.Table, temporary: Path, source_batch: int) -> NewTrain:
        # The journal is asked: a thread of a run that has ended must not replace a train.
        number = self._journal.next_train(self.stream)
        final = self.path(number)
        self._reached("train written")
        put(temporary, final)
        self._reached("train named")
        arrived_s = table[ARRIVED_AT].to_numpy()
        train = Train(
            number=number,
            tuples=table.num_rows,
            bytes=size_of(final),
            head_arrived_at_s=float(np.min(arrived_s)),
            mean_arrived_at_s=float(np.mean(arrived_s)),
            checksum=checksum_of(final),
        )
        return NewTrain(self.stream, train, source_batch)


def _tuple_bytes(path: Path) -> float:
    """Return what a tuple of a train takes in memory, estimated from the first row group."""
    files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    for file in files:
        try:
            with pq.ParquetFile(file) as parquet:
                if parquet.metadata.num_rows:
                    rows = parquet.read_row_group(0)
                    return rows.nbytes / rows.num_rows
        except (pa.ArrowException, OSError):
            break  # the error is raised when the train is read
    return 0.0
