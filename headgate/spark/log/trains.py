"""Trains that a call reads: as a table in memory, or as a DataFrame for a job."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from headgate.model.arrays import Ints
from headgate.model.stream import ARRIVED_AT
from headgate.spark.jvm.arrow_frames import frame_of
from headgate.spark.jvm.paths import literal_path


@dataclass(frozen=True)
class Trains:
    """Trains of one stream, as a table in memory or as a DataFrame for a job.

    Args:
        verify: raises an error if the files for a job are not those that were written.
        first, end: the trains are first, ..., end − 1 of their stream or timeline.
    """

    schema: StructType
    files: Sequence[str]
    tuples: int
    table: Callable[[], pa.Table]
    first_tuple: Callable[[], int] | None = None
    verify: Callable[[], None] = lambda: None
    first: int = 0
    end: int = 0

    def number_of(self, row: int) -> int | None:
        """Return the number of a tuple in its stream; None for trains that are not in a log."""
        return None if self.first_tuple is None else self.first_tuple() + row

    def frame(self, session: SparkSession) -> DataFrame:
        self.verify()
        return session.read.schema(self.schema).parquet(*map(literal_path, self.files))

    def mean_arrived_at_s(self) -> float:
        # Not concatenated by Arrow: the schemas differ. The arrival cannot be NULL in files that
        # Spark wrote; in ours it can.
        columns = [pq.read_table(file, columns=[ARRIVED_AT])[ARRIVED_AT] for file in self.files]
        return float(np.mean(np.concatenate([column.to_numpy() for column in columns])))


@dataclass(frozen=True)
class NumberedTrains(Trains):
    """Trains with the number of each tuple in place of its arrival: 0 for the first, and so on.

    Evaluation copies the arrival of a tuple to every row that is computed from it. So every row has
    the number of its tuple, whatever the lane and the order of rows.
    """

    def frame(self, session: SparkSession) -> DataFrame:
        self.verify()
        firsts, first = list[Any](), 0
        for file in _files_of(self.files):
            firsts += [F.lit(file.name), F.lit(first)]
            first += pq.read_metadata(file).num_rows
        rows = session.read.schema(self.schema).parquet(*map(literal_path, self.files))
        first_of_file = F.element_at(F.create_map(*firsts), F.col("_metadata.file_name"))
        number = (first_of_file + F.col("_metadata.row_index")).cast("double")
        return rows.withColumn(ARRIVED_AT, number)


@dataclass(frozen=True)
class TimelineTrains(Trains):
    """Trains of a timeline; computing over them needs other trains, too."""


@dataclass(frozen=True)
class RowsOfTrains(Trains):
    """Some rows of trains; the mean arrival is that of all rows.

    Args:
        places: where the rows are in the trains; None if that is unknown.
    """

    places: Ints | None = None

    @classmethod
    def of(cls, trains: Trains, rows: pa.Table, places: Ints | None = None) -> "RowsOfTrains":
        """Return trains with these of their rows."""
        return cls(
            trains.schema, trains.files, rows.num_rows, lambda: rows,
            None if places is None else trains.first_tuple, places=places,
        )  # fmt: skip

    def number_of(self, row: int) -> int | None:
        return None if self.places is None else super().number_of(int(self.places[row]))

    def frame(self, session: SparkSession) -> DataFrame:
        return frame_of(session, self.table(), self.schema)


def _files_of(trains: Sequence[str]) -> Iterator[Path]:
    """Yield the files of trains in the order of their tuples; a train may be a folder."""
    for train in map(Path, trains):
        yield from sorted(train.glob("*.parquet")) if train.is_dir() else [train]


def numbers_in(table: Any, name: str) -> Any:
    """Return a column of numbers; a NULL is NaN."""
    column = next(column for column in table.column_names if column.lower() == name.lower())
    return table[column].cast("float64", safe=False).to_numpy()
