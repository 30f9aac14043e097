"""Queries over several tuples with on_error: dead_letter: bad tuples are left out beforehand."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import SparkSession

from headgate.model.kind import Kind
from headgate.model.plan import Lane
from headgate.model.stream import ARRIVED_AT
from headgate.spark.event_time.timeline_entries import Entry
from headgate.spark.event_time.timeline_reader import TimelineReader
from headgate.spark.jvm.errors import cause_of
from headgate.spark.jvm.lane.plan_runner import DriverLane
from headgate.spark.jvm.lane.small_query import SmallQuery
from headgate.spark.jvm.query.plans import Plan
from headgate.spark.log.row_letters import letters_of
from headgate.spark.output import Output, RowLetter
from headgate.spark.windows.computation import Computation


class BadRowFilter:
    """A timeline without the tuples that break an expression of one query.

    What the query computes from single tuples runs over each train once. So whether a tuple is bad
    depends on the tuple alone: a window that is computed again leaves out the same tuples.
    """

    def __init__(self, kind: Kind, timeline: TimelineReader, driver: DriverLane) -> None:
        self._timeline, self._axis = timeline, kind.inputs[0].window.axis
        self.timeline = timeline.checked(self._is_good)
        plans: Any = kind.plans
        plan = plans if isinstance(plans, Plan) else plans.at_once or plans.one
        streams = {source.view: source.stream for source in kind.inputs}
        self._checks: dict[str, list[SmallQuery]] = {stream: [] for stream in streams.values()}
        for row_plan in plan.plans.of_rows(plan):
            (view,) = row_plan.relations
            if view in streams:  # else it is a stored table
                self._checks[streams[view]].append(SmallQuery(row_plan, driver))
        self._causes: dict[int, dict[int, str]] = {}
        """By number of a train in the timeline, its bad tuples and why they are bad."""
        self._session: SparkSession | None = None

    def begin(self, session: SparkSession, first: int, end: int) -> None:
        """Check the trains that a call takes."""
        self._session = session
        for number in [number for number in self._causes if number < self._timeline.needed_from]:
            del self._causes[number]
        entries = self._timeline.trains_between(first, end)
        for stream in self._checks:
            self._check([entry for entry in entries if entry.stream == stream])

    def letters(self, first: int, end: int) -> Iterator[RowLetter]:
        """Yield the letters of bad tuples in some trains; late tuples count as late."""
        for entry in self._timeline.trains_between(max(first, self._timeline.needed_from), end):
            self._check([entry])
            causes = self._causes[entry.number]
            if causes:
                in_time = self._timeline.in_time(entry, self._axis)
                causes = {row: cause for row, cause in causes.items() if in_time[row]}
                table = self._timeline.table(entry)
                yield from letters_of(entry.stream, table, entry.first_tuple, causes)

    def _is_good(self, entry: Entry, table: pa.Table) -> NDArray[np.bool_]:
        self._check([entry])
        is_good = np.ones(table.num_rows, dtype=np.bool_)
        is_good[[*self._causes[entry.number]]] = False
        return is_good

    def _check(self, entries: Sequence[Entry]) -> None:
        """Check trains of one stream together, unless they are checked already."""
        entries = [entry for entry in entries if entry.number not in self._causes]
        if not entries:
            return
        assert self._session is not None
        tables = [self._timeline.table(entry).drop_columns([ARRIVED_AT]) for entry in entries]
        rows = pa.concat_tables(tables).combine_chunks()
        causes: dict[int, str] = {}
        for check in self._checks[entries[0].stream]:
            bad = check.bad_rows(self._session, rows)
            causes = {row: cause_of(error) for row, error in bad.items()} | causes
        ends = np.cumsum([entry.tuples for entry in entries])
        by_train: list[dict[int, str]] = [{} for _ in entries]
        for row, cause in causes.items():
            train = int(np.searchsorted(ends, row, side="right"))
            by_train[train][row - int(ends[train]) + entries[train].tuples] = cause
        for entry, train_causes in zip(entries, by_train, strict=True):
            self._causes[entry.number] = train_causes


class Checked:
    """A computation over a checked timeline: its outputs have the letters of bad tuples.

    Args:
        letters_from: returns the train from which on bad tuples have no letters yet.
    """

    def __init__(
        self, rows: BadRowFilter, computation: Computation, letters_from: Callable[[], int]
    ) -> None:
        self._rows, self._computation = rows, computation
        self._letters_from = letters_from

    @property
    def needs_job(self) -> bool:
        """Whether the query is known to be unable to run in the driver."""
        return self._computation.needs_job

    def __call__(
        self, session: SparkSession, lane: Lane, first: int, end: int, shared_reads: object = None
    ) -> Output:
        """Return the results without bad tuples, and the letters of those."""
        self._rows.begin(session, first, end)
        output = self._computation(session, lane, first, end, {})
        letters = self._rows.letters(min(self._letters_from(), first), end)
        return replace(output, letters=tuple(letters))
