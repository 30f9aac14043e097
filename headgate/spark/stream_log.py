"""The stream log: numbered, durable Parquet trains, read by list."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, StructField, StructType

from headgate.model.stream import ARRIVED_AT
from headgate.spark.files import flush, put, remove
from headgate.spark.journal import Journal, Train
from headgate.spark.refusals import SPARK_ERRORS

DRIVER_TUPLES = 100_000
"""A train up to here is written in the driver: 3 ms against 110 by a Spark job at 20 000 rows."""


class StreamLog:
    """One stream's trains under `state/log/NAME`, a file or (written by Spark) a folder each."""

    def __init__(
        self,
        state: Path,
        stream: str,
        journal: Journal,
        schema: StructType,
        reached: Callable[[str], None] = lambda point: None,
    ) -> None:
        self.stream = stream
        self._reached = reached
        self.schema = StructType([*schema.fields, StructField(ARRIVED_AT, DoubleType())])
        self._journal = journal
        self._folder = state / "log" / stream
        self._folder.mkdir(parents=True, exist_ok=True)
        self.next_number = journal.next_train(stream)
        # Nothing is known of the first batch, so it must not pass through the driver.
        self._expected_tuples = DRIVER_TUPLES + 1
        for path in self._folder.iterdir():
            # Of a batch that a crash has kept out of the journal; its source will bring it again.
            if path.name.startswith(".") or int(path.name.split(".")[0]) >= self.next_number:
                remove(path)

    def path(self, number: int) -> Path:
        return self._folder / f"{number:012d}.parquet"

    def paths(self, first: int, end: int) -> list[str]:
        """Gives what a job over the trains first, ..., end − 1 reads."""
        return [str(self.path(number)) for number in range(first, end)]

    def append(self, batch: DataFrame, source_batch: int, now_s: float) -> Train | None:
        """Makes a train of a source's batch, once; None when it was empty or is there already.

        A small one passes through the driver, a large one never does; the last train tells which
        is to be expected.
        """
        if self._journal.has_batch(self.stream, source_batch):
            return None
        temporary = self._folder / f".{self.next_number:012d}.parquet"
        arrived_s = F.col(ARRIVED_AT) if ARRIVED_AT in batch.columns else F.lit(None)
        batch = batch.withColumn(ARRIVED_AT, F.coalesce(arrived_s, F.lit(now_s)))
        table = self._write_here(batch, temporary)
        if table is None:
            batch.write.mode("overwrite").parquet(str(temporary))
            for file in temporary.iterdir():
                flush(file)
            table = pq.read_table(temporary, columns=[ARRIVED_AT])
        self._expected_tuples = table.num_rows
        if not table.num_rows:
            remove(temporary)
            return None
        return self._add(table, temporary, source_batch)

    def _write_here(self, batch: DataFrame, file: Path) -> pa.Table | None:
        """Writes a batch in the driver; None where it is, or proves, too large for that."""
        if self._expected_tuples > DRIVER_TUPLES:
            return None
        try:
            table = batch.toArrow()
        except SPARK_ERRORS:
            return None  # above spark.driver.maxResultSize, say: Spark's own writer tells
        pq.write_table(table, file, compression="zstd")
        flush(file)
        return table

    def drop(self, before: int) -> None:
        """Removes the trains below a number."""
        kept = [train.number for train in self._journal.trains(self.stream)]
        gone = [number for number in kept if number < before]
        if gone:
            self._journal.drop_trains(self.stream, before)
            for number in gone:
                remove(self.path(number))

    def _add(self, table: pa.Table, temporary: Path, source_batch: int) -> Train:
        final = self.path(self.next_number)
        self._reached("train written")
        put(temporary, final)
        flush(self._folder)
        self._reached("train named")
        files = list(final.iterdir()) if final.is_dir() else [final]
        arrived_s = table[ARRIVED_AT]
        train = Train(
            number=self.next_number,
            tuples=table.num_rows,
            bytes=sum(file.stat().st_size for file in files),
            head_arrived_at_s=pc.min(arrived_s).as_py(),
            mean_arrived_at_s=pc.mean(arrived_s).as_py(),
        )
        self._journal.add_train(self.stream, train, source_batch)
        self.next_number += 1
        self._reached("train journalled")
        return train
