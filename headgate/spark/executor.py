"""Runs a box call as one Spark job and commits what every member made of it."""

import logging
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path as File

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from headgate.model.events import Floats
from headgate.model.network import Path
from headgate.model.stream import ARRIVED_AT
from headgate.spark.files import flush, put
from headgate.spark.fusion import FusedSql, fused_sql
from headgate.spark.journal import Journal, Result
from headgate.spark.sinks import FileSink
from headgate.spark.stream_log import StreamLog

log = logging.getLogger("headgate.spark")


@dataclass(frozen=True)
class Work:
    """A call in the words of Spark: which paths, over which trains."""

    paths: tuple[Path, ...]
    first_train: int
    end_train: int
    tuples: int


@dataclass(frozen=True)
class Output:
    """What a member made: its rows, and when the tuples behind them arrived."""

    table: pa.Table
    arrived_at_s: Floats


MOST_TEXTS = 1000
"""Texts kept; a policy may form more groups than anybody wants to remember."""


class Executor:
    """Evaluates and commits; safe to use from several workers, each with its own session."""

    def __init__(
        self,
        journal: Journal,
        logs: Mapping[str, StreamLog],
        sinks: Mapping[str, FileSink],
        reached: Callable[[str], None],
    ) -> None:
        self._journal, self._logs, self._sinks = journal, logs, sinks
        self._reached = reached
        self._texts: dict[tuple[str, ...], FusedSql] = {}

    def evaluate(
        self, session: SparkSession, paths: tuple[Path, ...], trains: Sequence[str]
    ) -> list[Output]:
        """Gives every member's results; several members are one job with one scan."""
        log = self._logs[paths[0].stream]
        scan = session.read.schema(log.schema).parquet(*trains)
        if paths[0].runs_whole:
            return [self._evaluate_whole(session, paths[0], scan)]
        # In one order whatever the policy's: the same members then are the same text, and Spark
        # finds the code that it has generated and compiled for it.
        ordered = tuple(sorted(paths, key=lambda path: path.query.name))
        fused = self._text(ordered)
        table = session.sql(fused.text, trains=scan).toArrow()
        made = {
            path.query.name: _member(path, table, flag, columns)
            for path, flag, columns in zip(ordered, fused.flags, fused.columns, strict=True)
        }
        return [made[path.query.name] for path in paths]

    def run(self, session: SparkSession, work: Work) -> list[Output]:
        """Evaluates and commits a call."""
        log = self._logs[work.paths[0].stream]
        outputs = self.evaluate(session, work.paths, log.paths(work.first_train, work.end_train))
        self.commit(work, outputs)
        return outputs

    def commit(self, work: Work, outputs: Sequence[Output]) -> None:
        """Makes the results visible, exactly once.

        They are written under temporary names, then journalled, then renamed: whoever reads the
        folder sees a file whole or not at all, and a crash between any two lines loses nothing.
        """
        results, renames, folders = [], [], set()
        for path, output in zip(work.paths, outputs, strict=True):
            sink = self._sinks[path.query.name]
            temporary, final = sink.names(work.first_train, work.end_train)
            count = output.table.num_rows
            if count:
                sink.write(output.table, temporary)
                self._reached("result written")
                renames.append((temporary, final))
                folders.add(sink.folder)
            names: tuple[File | None, File | None] = (temporary, final) if count else (None, None)
            results.append(
                Result(
                    path.query.name, work.first_train, work.end_train, work.tuples, count, *names
                )
            )
        self._reached("results written")
        step = self._journal.intend(results)
        self._reached("step journalled")
        try:
            for temporary, final in renames:
                put(temporary, final)
                self._reached("result visible")
            if renames:
                for folder in folders:
                    flush(folder)
                self._journal.confirm(step)
        except (OSError, sqlite3.Error) as error:
            # The step is certain: to run it again would write it twice. Recovery ends it.
            log.warning("results stay hidden until the next start: %s", error)

    def _evaluate_whole(self, session: SparkSession, path: Path, trains: DataFrame) -> Output:
        """Runs a text as it is written, over a view of the stream's name in the worker's session.

        Which input row an output row comes from is not known then; each counts as arrived at the
        mean of its trains.
        """
        mean_s = trains.agg({ARRIVED_AT: "avg"}).collect()[0][0]
        trains.drop(ARRIVED_AT).createOrReplaceTempView(path.stream)
        frame = session.sql(path.query.sql)
        if self._sinks[path.query.name].format == "json":
            frame = frame.selectExpr("to_json(struct(*))")
        table = frame.toArrow()
        return Output(table, np.full(table.num_rows, mean_s))

    def _text(self, paths: tuple[Path, ...]) -> FusedSql:
        names = tuple(path.query.name for path in paths)
        if len(self._texts) > MOST_TEXTS:
            self._texts.clear()
        if names not in self._texts:
            as_json = [self._sinks[name].format == "json" for name in names]
            self._texts[names] = fused_sql(paths, as_json)
        return self._texts[names]


def _member(path: Path, table: pa.Table, flag: str | None, columns: Sequence[str]) -> Output:
    rows = table if flag is None else table.filter(table[flag])
    arrived_s = rows[ARRIVED_AT].to_numpy()
    chosen = [rows[column] for column in columns]
    names = path.columns if len(path.columns) == len(columns) else columns
    return Output(pa.Table.from_arrays(chosen, names=list(names)), arrived_s)
