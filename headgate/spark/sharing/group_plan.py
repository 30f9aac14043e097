"""A group of queries that runs as one plan, on either lane."""

import logging
import threading

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from headgate.errors import HeadgateError
from headgate.model.plan import Lane
from headgate.model.window import ROW
from headgate.spark.jvm.arrow_frames import collected
from headgate.spark.jvm.errors import SPARK_ERRORS, cause_of, is_of_row
from headgate.spark.jvm.lane.failing_row import blamed
from headgate.spark.jvm.lane.plan_runner import DriverLane, NeedsJob, PlanRunner
from headgate.spark.jvm.lane.small_query import MOST_ROWS
from headgate.spark.log.trains import Trains
from headgate.spark.output import Output
from headgate.spark.sharing.constants_group import ConstantsGroup
from headgate.spark.sharing.mask_group import MaskGroup
from headgate.spark.sharing.sharing_plan import Part
from headgate.spark.sharing.whole_query import WholeQuery

log = logging.getLogger("headgate.spark")


class Prepared:
    """A group with its physical plan, which Spark plans when it is first needed."""

    def __init__(
        self,
        part: Part | None,
        group: MaskGroup | ConstantsGroup | WholeQuery,
        driver: DriverLane,
    ) -> None:
        self.part, self.group, self._driver = part, group, driver
        self.needs_job = False
        """Whether the plan is known to be unable to run in the driver."""
        self._runner: PlanRunner | None = None
        self._turn = threading.Lock()

    @property
    def is_shared(self) -> bool:
        """Whether it runs the code of several queries, so that an error may be any one's."""
        return self.part is not None and len(self.part.members) > 1

    def prepare(self) -> PlanRunner | None:
        """Return the runner of the plan in the driver.

        Returns None if the plan computes nothing, or if it must run as a job.
        """
        with self._turn:
            plan = self.group.driver
            if self._runner is None and not self.needs_job and plan is not None:
                try:
                    self._runner = self._driver.prepare(plan)
                except NeedsJob as error:
                    log.debug("queries run as jobs: %s", error)
                    self.needs_job = True
            return self._runner

    def run(
        self, session: SparkSession, lane: Lane, trains: Trains, names: list[str], tag: str
    ) -> list[Output]:
        """Run on a lane and return the outputs of the members in `names`.

        Args:
            tag: a name for this call, by which the driver lane can cancel it.
        """
        if lane == "driver":
            rows = trains.table()
            return self._split(rows, self._computed(rows, tag), trains, names)
        frames = {self.group.stream: trains.frame(session)}
        rows = collected(self.group.job.frame(session, frames))
        return self._split(rows, rows, trains, names)

    def run_or_repeat(
        self, session: SparkSession, lane: Lane, trains: Trains, names: list[str], tag: str
    ) -> tuple[list[Output], Lane]:
        """Run on a lane; if the driver lane fails, run again as a job.

        If the job fails too, the query is the cause, and its error is raised.
        """
        runner = self.prepare() if lane == "driver" else None
        if lane == "job" or self.needs_job:
            return self._run_as_job(session, trains, names, tag), "job"
        try:
            return self.run(session, "driver", trains, names, tag), "driver"
        except HeadgateError:
            raise  # not an error of the query: the log cannot read a train, for example
        except Exception as error:
            try:
                outputs = self.run(session, "job", trains, names, tag)
            except SPARK_ERRORS as job_error:
                raise self._blamed(error, job_error, runner, trains) from error
            log.warning(
                "queries run as jobs from now on, the driver lane failed: %s", cause_of(error)
            )
            self.needs_job = True
            return outputs, "job"

    def _run_as_job(
        self, session: SparkSession, trains: Trains, names: list[str], tag: str
    ) -> list[Output]:
        """Run as a job. If it fails at a row, find the row in the driver and name it in the error.

        A job does not know its row. The driver is asked only if the rows are few enough for it.
        """
        try:
            return self.run(session, "job", trains, names, tag)
        except SPARK_ERRORS as error:
            few = is_of_row(error) and trains.tuples <= MOST_ROWS
            runner = self.prepare() if few else None
            if runner is None:
                raise
            try:
                self.run(session, "driver", trains, names, tag)
            except SPARK_ERRORS as in_driver:
                raise self._blamed(in_driver, error, runner, trains) from in_driver
            raise

    def _blamed(
        self, in_driver: Exception, by_job: Exception, runner: PlanRunner | None, trains: Trains
    ) -> Exception:
        """Return the error of a call that failed on both lanes, with the row if it is certain."""
        row = None if runner is None else runner.failing_row
        number = None if row is None else trains.number_of(row.number)
        return blamed(in_driver, by_job, row, self.group.stream, number)

    def _split(
        self, rows: pa.Table, computed: pa.Table, trains: Trains, names: list[str]
    ) -> list[Output]:
        if isinstance(self.group, WholeQuery):
            return self.group.split(trains.mean_arrived_at_s(), computed, names)
        return self.group.split(rows, computed, names)

    def _computed(self, rows: pa.Table, tag: str) -> pa.Table:
        runner = self.prepare()
        if runner is None:
            return rows
        stream = self.group.stream
        if runner.reads(stream, ROW):
            rows = rows.append_column(ROW, pa.array(np.arange(rows.num_rows)))
        return runner({stream: rows}, tag)

    def renew(self) -> None:
        """Drop the runner, so that the plan is prepared again.

        A call that was abandoned may hold the old runner forever.
        """
        self._runner = None
