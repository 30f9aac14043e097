"""Row origins: which tuple each row of a query that fills a derived stream comes from."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from headgate.model.network.network import Path
from headgate.model.plan import Lane
from headgate.model.stream import ARRIVED_AT
from headgate.spark.journal.journal import Journal
from headgate.spark.log.stream_log import StreamLog
from headgate.spark.log.trains import Trains
from headgate.spark.output import Output
from headgate.spark.sinks.derived_streams import DerivedStreams
from headgate.spark.work import Work

Check = Callable[[], None]


class Evaluate(Protocol):
    """A function that evaluates queries over trains.

    It returns a result or an error per query, and the lane that most queries took.
    """

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
    """Evaluate a call and find the tuple that each row comes from.

    Tuples carry their number in place of their arrival, and so do the rows. A query that Spark runs
    whole gives no origins; if the stream that it fills has an event time, it runs over one train at
    a time.

    Args:
        source: the log of the stream that the queries read.
    """
    first, end = work.first_train, work.end_train
    arrived_s = source.columns(first, end, [ARRIVED_AT])[ARRIVED_AT].to_numpy()
    together = [path for path in work.paths if not derived.takes_single_trains(path)]
    output_by_query: dict[str, Output | Exception] = {}
    lane: Lane = work.lane
    if together:
        trains = source.numbered(first, end, work.tuples)
        outputs, lane = evaluate(session, together, trains, work.lane, check)
        for path, output in zip(together, outputs, strict=True):
            if isinstance(output, Output) and not path.runs_whole:
                places = output.arrived_at_s.astype(np.int64)
                output = replace(output, arrived_at_s=arrived_s[places], places=places)
            output_by_query[path.query.name] = output
    counts = journal.tuples_of(source.stream, first, end)
    for path in work.paths:
        if path.query.name not in output_by_query:
            single_trains = [
                source.trains(number, number + 1, tuples)
                for number, tuples in enumerate(counts, first)
            ]
            output_by_query[path.query.name] = _one_by_one(
                evaluate, session, path, single_trains, work.lane, check
            )
    return [output_by_query[path.query.name] for path in work.paths], lane


def _one_by_one(
    evaluate: Evaluate,
    session: SparkSession,
    path: Path,
    trains: list[Trains],
    lane: Lane,
    check: Check,
) -> Output | Exception:
    """Evaluate a query train by train; the origin of a row is the first tuple of its train."""
    outputs: list[Output] = []
    before = 0
    for train in trains:
        ((result,), _) = evaluate(session, [path], train, lane, check)
        if isinstance(result, Exception):
            return result
        outputs.append(replace(result, places=np.full(result.table.num_rows, before)))
        before += train.tuples
    tables = [output.table for output in outputs if output.table.num_columns]
    return Output(
        pa.concat_tables(tables) if tables else pa.table({}),
        np.concatenate([output.arrived_at_s for output in outputs]),
        places=np.concatenate([output.places for output in outputs if output.places is not None]),
        letters=tuple(letter for output in outputs for letter in output.letters),
        shed=sum(output.shed for output in outputs),
    )
