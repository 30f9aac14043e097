"""Tuples that come too late for windows, put aside: a file for each train that has some."""

import logging
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyspark.sql.types import LongType, StringType, StructField, StructType

from headgate.errors import ConfigRefused, RecoveryRefused
from headgate.model.window_ends import NEVER, Times
from headgate.spark.log.files import HIDDEN, flush, put
from headgate.spark.log.parquet_bytes import with_spark_schema
from headgate.spark.log.stream_log import StreamLog

log = logging.getLogger("headgate.spark")

NUMBER, WHY = "_number", "_why"
"""A tuple's number in its stream, and why no window has it."""


class LateTuples:
    """A directory with a stream's tuples that are late or have no time, each once.

    Time passes in every timeline by itself where a stream is quiet, so they need not agree on what
    is late: a tuple is here if one of them has it so. A train's file has its name whoever writes
    it, and after a crash it is written again. Safe to use from several threads.

    Raises:
        ConfigRefused: the directory cannot be made, or a column has a name that is taken.
        RecoveryRefused: the stream is new, and the directory has files of its name.
    """

    def __init__(self, folder: str, stream_log: StreamLog) -> None:
        self._folder, self._log, self._turn = Path(folder), stream_log, threading.Lock()
        self._fails, stream = False, stream_log.stream
        extra = StructField(NUMBER, LongType()), StructField(WHY, StringType())
        self._schema = StructType([*stream_log.schema.fields, *extra])
        if taken := sorted({NUMBER, WHY}.intersection(map(str.lower, stream_log.schema.names))):
            raise _refused(stream, folder, f"no column {taken[0]} in the stream")
        try:
            (self._folder / HIDDEN).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _refused(stream, folder, "a directory that can be written") from error
        old = sorted(each.name for each in self._folder.glob(f"{stream}-*.parquet"))
        if old and not stream_log.next_number:
            raise RecoveryRefused(
                subject=f"stream '{stream}'",
                expected=f"no late tuples in {folder} of a stream that is new",
                found=f"{len(old)} files there, {old[0]} the first",
                fix="move or remove them, or give the stream another `late_path`: its tuples would"
                " mix with the old ones",
            )

    def put(self, train: int, first_tuple: int, late: NDArray[np.bool_], times: Times) -> bool:
        """Puts tuples of a train aside, with those that are there already; False if it cannot now.

        Args:
            first_tuple: the number of the train's first tuple.
        """
        with self._turn:
            try:
                self._put(train, first_tuple, np.flatnonzero(late), times)
                self._fails = False
            except OSError as error:
                if not self._fails:
                    log.warning(
                        "queries with windows wait: late tuples of stream '%s' cannot be written"
                        " to %s: %s", self._log.stream, self._folder, error.strerror or error,
                    )  # fmt: skip
                self._fails = True
            return not self._fails

    def _put(self, train: int, first_tuple: int, at: NDArray[np.int64], times: Times) -> None:
        name = f"{self._log.stream}-{train:012d}.parquet"
        temporary, final = self._folder / HIDDEN / name, self._folder / name
        if final.exists():
            known = pq.read_table(final, columns=[NUMBER])[NUMBER].to_numpy() - first_tuple
            if np.isin(at, known).all():
                return
            at = np.union1d(at, known)
        table = self._log.table(train, train + 1).take(at)
        why = ["no time" if time == NEVER else "late" for time in times[at].tolist()]
        table = table.append_column(NUMBER, pa.array(at + first_tuple))
        table = table.append_column(WHY, pa.array(why, pa.string()))
        table = with_spark_schema(table, self._schema)
        temporary.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, temporary, use_dictionary=False)
        flush(temporary)
        put(temporary, final)
        flush(self._folder)


def _refused(stream: str, folder: str, expected: str) -> ConfigRefused:
    return ConfigRefused(
        path=f"stream '{stream}'", key="late_path", value=folder, expected=expected
    )
