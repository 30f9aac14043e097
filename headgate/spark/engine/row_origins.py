"""Evaluates calls with queries that fill streams: of which tuple was every row made?"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from headgate.model.network import Path
from headgate.model.plan import Lane
from headgate.model.stream import ARRIVED_AT
from headgate.spark.log.journal import Journal
from headgate.spark.log.stream_log import StreamLog, Trains
from headgate.spark.output import Output
from headgate.spark.sinks.derived_streams import DerivedStreams
from headgate.spark.work import Work

Check = Callable[[], None]


class Evaluate(Protocol):
    """Evaluates queries over trains: results or why there are none, and the lane of most."""

    def __call__(
        self, session: SparkSession, paths: Sequence[Path], trains: Trains, lane: Lane, check: Check
    ) -> tuple[list[Output | Exception], Lane]: ...


def produced(
    evaluate: Evaluate,
    derived: DerivedStreams,
    journal: Journal,
    source: StreamLog,
    session: SparkSession,
    work: Work,
    check: Check,
) -> tuple[list[Output | Exception], Lane]:
    """Evaluate a call and find out of which tuple every row was made.

    Tuples carry their number in place of their arrival. A query that Spark runs as it is written
    does not tell; if its stream has an event time, it runs over one train at a time.

    Args:
        source: the log of the stream that the queries read.
    """
    first, end = work.first_train, work.end_train
    arrived_s = source.columns(first, end, [ARRIVED_AT])[ARRIVED_AT].to_numpy()
    together = [path for path in work.paths if not derived.takes_single_trains(path)]
    found: dict[str, Output | Exception] = {}
    lane: Lane = work.lane
    if together:
        trains = source.numbered(first, end, work.tuples)
        outputs, lane = evaluate(session, together, trains, work.lane, check)
        for path, output in zip(together, outputs, strict=True):
            if isinstance(output, Output) and not path.runs_whole:
                places = output.arrived_at_s.astype(np.int64)
                output = replace(output, arrived_at_s=arrived_s[places], places=places)
            found[path.query.name] = output
    counts = journal.tuples_of(source.stream, first, end)
    for path in work.paths:
        if path.query.name not in found:
            trains_of = [
                source.trains(number, number + 1, tuples)
                for number, tuples in enumerate(counts, first)
            ]
            found[path.query.name] = _one_by_one(
                evaluate, session, path, trains_of, work.lane, check
            )
    return [found[path.query.name] for path in work.paths], lane


def _one_by_one(
    evaluate: Evaluate,
    session: SparkSession,
    path: Path,
    trains: list[Trains],
    lane: Lane,
    check: Check,
) -> Output | Exception:
    """Evaluate a query over one train after the other; rows count as made of its first tuple."""
    outputs: list[Output] = []
    before = 0
    for train in trains:
        ((output,), _) = evaluate(session, [path], train, lane, check)
        if isinstance(output, Exception):
            return output
        outputs.append(replace(output, places=np.full(output.table.num_rows, before)))
        before += train.tuples
    return Output(
        pa.concat_tables([each.table for each in outputs]),
        np.concatenate([each.arrived_at_s for each in outputs]),
        places=np.concatenate([each.places for each in outputs if each.places is not None]),
    )
