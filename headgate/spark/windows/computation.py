"""The interface of computations over several tuples: what they get, and what they return."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa
from pyspark.sql import SparkSession

from headgate.model.plan import Lane
from headgate.spark.event_time.timeline_reader import TimelineReader
from headgate.spark.jvm.lane.small_query import SmallQuery
from headgate.spark.jvm.query.plans import Plan
from headgate.spark.log.shedding_rules import QueryDrops
from headgate.spark.output import Output
from headgate.spark.sharing.panes import Panes
from headgate.spark.windows.results import Results


@dataclass(frozen=True)
class Material:
    """What a computation is constructed from.

    Args:
        kind: the kind of the query, an object of the class in `language/kinds` that names the
            computation; its `plans` are those of Spark.
        nothing: returns an empty table with the columns of a stream's log.
        query: returns a plan ready to run.
        results: returns a plan with the query's result columns, and the same plan ready to run.
        panes: returns the panes for a key of partial aggregates; creates them if there are none.
        drops: which tuples the query drops in overload.
    """

    kind: Any
    timeline: TimelineReader
    nothing: Callable[[str], pa.Table]
    query: Callable[[Plan], SmallQuery]
    results: Callable[[Plan], tuple[Results, SmallQuery]]
    panes: Callable[[int, Callable[[], Panes]], Panes]
    drops: QueryDrops


class Computation(Protocol):
    """One query over its timeline. Its class takes a `Material`.

    What it remembers between calls it must be able to compute again: after a crash, the query
    continues at its cursor, and the log still has the tuples that its kind needs.
    """

    @property
    def needs_job(self) -> bool:
        """Whether the query is known to be unable to run in the driver."""

    def __call__(
        self, session: SparkSession, lane: Lane, first: int, end: int, shared_reads: dict[Any, Any]
    ) -> Output:
        """Return the results of the timeline's trains first, ..., end − 1.

        They must not depend on how many trains a call takes.

        Args:
            shared_reads: what other queries of the timeline have read from these trains.
        """
