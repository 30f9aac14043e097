"""A plan over Arrow tables that runs in the driver if it can, and as a job otherwise."""

import logging
import threading
from collections.abc import Mapping
from functools import partial

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from headgate.model.plan import Lane
from headgate.spark.jvm.arrow_frames import collected, frame_of
from headgate.spark.jvm.errors import SPARK_ERRORS, cause_of, is_of_row
from headgate.spark.jvm.lane.bad_rows import Failure, bad_rows
from headgate.spark.jvm.lane.failing_row import blamed
from headgate.spark.jvm.lane.plan_runner import DriverLane, NeedsJob, PlanRunner, SplitPlan
from headgate.spark.jvm.query.plans import Plan

log = logging.getLogger("headgate.spark")

MOST_ROWS = 200_000
"""The most rows for the driver lane. Above it, a query runs as a job, which uses all cores."""


class SmallQuery:
    """One plan that runs many times, over other rows of the same relations.

    Args:
        streams: the stream of each relation, for error messages.
    """

    def __init__(
        self, plan: Plan, driver: DriverLane, streams: Mapping[str, str] | None = None
    ) -> None:
        self.plan, self._driver, self._streams = plan, driver, streams or {}
        self.needs_job = False
        """Whether the plan is known to be unable to run in the driver."""
        self._runner: PlanRunner | None = None
        self._split: SplitPlan | None = None
        self._is_split = False
        self._turn = threading.Lock()

    @property
    def no_rows(self) -> pa.Table:
        """An empty table with the columns of the results."""
        return self.plan.arrow_schema.empty_table()

    def __call__(
        self, session: SparkSession, lane: Lane, tables: Mapping[str, pa.Table]
    ) -> pa.Table:
        """Run the plan on a lane and return its rows.

        If the driver lane fails, the plan runs as a job. If the job succeeds, later calls are jobs
        too.
        """
        small = sum(table.num_rows for table in tables.values()) <= MOST_ROWS
        runner = self._prepared() if small and lane == "driver" else None
        if runner is None:
            try:
                return self._by_job(session, tables)
            except SPARK_ERRORS as job_error:  # a job does not know the row, the driver finds it
                runner = self._prepared() if small and is_of_row(job_error) else None
                if runner is None:
                    raise
                try:
                    runner(tables)
                except SPARK_ERRORS as error:
                    raise self._blamed(error, job_error, runner) from error
                raise
        try:
            return runner(tables)
        except Exception as error:
            try:
                rows = self._by_job(session, tables)
            except SPARK_ERRORS as job_error:  # both lanes failed, so a row is the cause
                raise self._blamed(error, job_error, runner) from error
            cause = cause_of(error)
            log.warning("a query runs as jobs from now on, the driver lane failed: %s", cause)
            with self._turn:
                self._runner, self.needs_job = None, True
            return rows

    def _blamed(self, in_driver: Exception, by_job: Exception, runner: PlanRunner) -> Exception:
        """Return the error of a call that failed on both lanes, with the row if it is certain."""
        row = runner.failing_row
        stream = "" if row is None else self._streams.get(row.view, row.view)
        return blamed(in_driver, by_job, row, stream, None)

    def bad_rows(self, session: SparkSession, rows: pa.Table) -> dict[int, Exception]:
        """Return the numbers of the rows that break the plan, each with its error.

        The plan takes the rows of its only relation one by one.
        """
        runner = self._prepared() if rows.num_rows <= MOST_ROWS else None
        run = partial(self._failure, session, runner, rows)
        failure = run(0, rows.num_rows)
        if failure is None:
            return {}
        if runner is not None and not is_of_row(failure.error):
            with self._turn:
                self._runner, self.needs_job = None, True
            return self.bad_rows(session, rows)
        return bad_rows(rows.num_rows, failure, run)

    def _failure(
        self, session: SparkSession, runner: PlanRunner | None, rows: pa.Table, first: int, end: int
    ) -> Failure | None:
        """Run the plan over some rows of its only relation, and return how it failed."""
        (name,) = self.plan.relations
        tables = {name: rows.slice(first, end - first)}
        try:
            if runner is None:
                self._by_job(session, tables)
            else:
                runner(tables)
        except SPARK_ERRORS as error:
            row = None if runner is None else runner.failing_row
            return Failure(error, None if row is None else row.number)
        return None

    def split(self) -> SplitPlan | None:
        """Return the plan as partial aggregates and their merge; None if it cannot be split."""
        with self._turn:
            if not self._is_split and not self.needs_job:
                try:
                    self._split = self._driver.split(self.plan)
                except NeedsJob as error:
                    log.debug("a query has no panes: %s", error)
                self._is_split = True
            return self._split

    def _prepared(self) -> PlanRunner | None:
        with self._turn:
            if self._runner is None and not self.needs_job:
                try:
                    self._runner = self._driver.prepare(self.plan)
                except NeedsJob as error:
                    log.debug("a query runs as jobs: %s", error)
                    self.needs_job = True
            return self._runner

    def _by_job(self, session: SparkSession, tables: Mapping[str, pa.Table]) -> pa.Table:
        frames = {}
        for name, schema in self.plan.relations.items():
            table = tables[name]
            fields = StructType([f for f in schema.fields if f.name in table.column_names])
            frames[name] = frame_of(session, table.select(fields.names), fields).coalesce(1)
        return collected(self.plan.frame(session, frames))
