"""Queries with on_error: dead_letter: tuples that break an expression are left out."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from headgate.model.network.network import Path
from headgate.model.plan import Lane
from headgate.spark.jvm.errors import SPARK_ERRORS, cause_of, is_of_row
from headgate.spark.jvm.lane.bad_rows import Failure, bad_rows
from headgate.spark.log.row_letters import letters_of
from headgate.spark.log.trains import RowsOfTrains, Trains
from headgate.spark.output import Output
from headgate.spark.sharing.group_plan import Prepared


def without_bad_rows(
    session: SparkSession,
    prepared: Prepared,
    path: Path,
    trains: Trains,
    lane: Lane,
    check: Callable[[], None],
) -> tuple[Output, Lane]:
    """Return the results of the tuples that break no expression of a query, and the lane.

    The other tuples are the letters of the output.

    Args:
        prepared: the plan of this query alone.
        check: raises when nothing more may begin.

    Raises:
        Exception: what failed was not an expression over a single tuple.
    """
    names = [path.query.name]
    runner = prepared.prepare() if lane == "driver" else None
    lane = "job" if lane == "job" or prepared.needs_job else "driver"

    def run(some: Trains, lane: Lane) -> Output | Failure:
        check()
        try:
            return prepared.run(session, lane, some, names, "")[0]
        except SPARK_ERRORS as error:
            row = None if runner is None else runner.failing_row
            return Failure(error, None if row is None else row.number)

    def failure_of(first: int, end: int) -> Failure | None:
        # The driver lane knows the failing row, where a job has to halve the rows.
        fast_lane: Lane = "job" if runner is None else "driver"
        result = run(RowsOfTrains.of(trains, rows.slice(first, end - first)), fast_lane)
        return result if isinstance(result, Failure) else None

    output = run(trains, lane)
    if isinstance(output, Output):
        return output, lane
    bad = {}
    if is_of_row(output.error):
        rows, runner = trains.table(), prepared.prepare()
        bad = bad_rows(rows.num_rows, output, failure_of)
    if not bad:  # the query fails as it would without `on_error`
        (whole,), lane = prepared.run_or_repeat(session, lane, trains, names, "")
        return whole, lane
    is_good = np.ones(rows.num_rows, dtype=np.bool_)
    is_good[[*bad]] = False
    good = RowsOfTrains.of(trains, rows.filter(pa.array(is_good)))
    (rest,), lane = prepared.run_or_repeat(session, lane, good, names, "")
    causes = {row: cause_of(error) for row, error in bad.items()}
    letters = letters_of(path.stream, rows, trains.number_of(0) or 0, causes)
    return replace(rest, letters=tuple(letters)), lane
