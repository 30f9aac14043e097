"""Tuples that arrive too late for their windows: a file for each train that has some."""

import logging
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyspark.sql.types import LongType, StringType, StructField, StructType

from headgate.access import PRIVATE, Access
from headgate.errors import ConfigRefused, RecoveryRefused
from headgate.model.window_ends import NEVER, Times
from headgate.spark.log.files import HIDDEN, flush, put
from headgate.spark.log.parquet_bytes import footer_of
from headgate.spark.log.stream_log import StreamLog

log = logging.getLogger("headgate.spark")

NUMBER, WHY = "_number", "_why"
"""Columns for a tuple's number in its stream, and for why no window has it."""


class LateTuples:
    """A directory with a stream's tuples that are late or have no time, each once.

    While a stream is quiet, each timeline advances its time separately, so timelines need not agree
    on what is late: a tuple is here if it is late in one of them. All of them write a train's late
    tuples to the same file, and after a crash write it again. Safe to use from several threads.

    Raises:
        ConfigRefused: the directory cannot be created, or a column has a reserved name.
        RecoveryRefused: the stream is new, but the directory has files of its name.
    """

    def __init__(self, folder: str, stream_log: StreamLog, access: Access = PRIVATE) -> None:
        self._access = access
        self._folder, self._log, self._turn = Path(folder), stream_log, threading.Lock()
        self._fails, stream = False, stream_log.stream
        extra = StructField(NUMBER, LongType()), StructField(WHY, StringType())
        self._footer = footer_of(StructType([*stream_log.schema.fields, *extra]))
        if clashes := sorted({NUMBER, WHY}.intersection(map(str.lower, stream_log.schema.names))):
            reason = f"the stream has a column {clashes[0]}, a name that files of late tuples need"
            raise _refused(stream, folder, f"left out: {reason}")
        try:
            access.folder(self._folder / HIDDEN)
        except (OSError, ValueError) as error:
            raise _refused(stream, folder, "a directory that can be written") from error
        old = sorted(file.name for file in self._folder.glob(f"{stream}-*.parquet"))
        if old and not stream_log.next_number:
            raise RecoveryRefused(
                subject=f"stream '{stream}'",
                expected=f"no late tuples in {folder} of a stream that is new",
                found=f"{len(old)} files there, {old[0]} the first",
                fix="move or remove them, or give the stream another `late_path`: its tuples would"
                " mix with the old ones",
            )

    def put(self, train: int, first_tuple: int, late: NDArray[np.bool_], times: Times) -> bool:
        """Write the late tuples of a train, with those already written; return False if it fails.

        Args:
            first_tuple: the number of the train's first tuple.
            late: which tuples of the train to write.
            times: the times of all its tuples.
        """
        with self._turn:
            try:
                self._put(train, first_tuple, np.flatnonzero(late), times)
                self._fails = False
            except (OSError, pa.ArrowException) as error:  # also of a file that is damaged
                if not self._fails:
                    cause = getattr(error, "strerror", None) or error
                    log.warning(
                        "queries with windows wait: late tuples of stream '%s' cannot be written"
                        " to %s: %s", self._log.stream, self._folder, cause,
                    )  # fmt: skip
                self._fails = True
            return not self._fails

    def _put(self, train: int, first_tuple: int, rows: NDArray[np.int64], times: Times) -> None:
        name = f"{self._log.stream}-{train:012d}.parquet"
        temporary, final = self._folder / HIDDEN / name, self._folder / name
        if final.exists():
            written_rows = pq.read_table(final, columns=[NUMBER])[NUMBER].to_numpy() - first_tuple
            if np.isin(rows, written_rows).all():
                return
            rows = np.union1d(rows, written_rows)
        table = self._log.table(train, train + 1).take(rows)
        why = ["no time" if time == NEVER else "late" for time in times[rows].tolist()]
        table = table.append_column(NUMBER, pa.array(rows + first_tuple))
        table = table.append_column(WHY, pa.array(why, pa.string()))
        table = table.replace_schema_metadata(self._footer)
        self._access.folder(temporary.parent)
        with open(temporary, "wb", opener=self._access.opener) as file:
            pq.write_table(table, file, use_dictionary=False)
        flush(temporary)
        put(temporary, final)
        flush(self._folder)


def _refused(stream: str, folder: str, expected: str) -> ConfigRefused:
    return ConfigRefused(
        path=f"stream '{stream}'", key="late_path", value=folder, expected=expected
    )
