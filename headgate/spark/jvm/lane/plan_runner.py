"""The driver lane: Spark's own physical plan, run in the calling thread without a job."""

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from threading import local
from typing import Any
from uuid import uuid4

import pyarrow as pa
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from headgate.spark.jvm.errors import SPARK_ERRORS, reason_of
from headgate.spark.jvm.java_classes import java_class
from headgate.spark.jvm.lane.failing_row import FailingRow
from headgate.spark.jvm.lane.row_files import (
    folders,
    read_rows,
    row_files,
    write_rows,
)
from headgate.spark.jvm.query.plans import Plan, struct_of
from headgate.spark.jvm.types import arrow_schema

SETTINGS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    # A broadcast runs a Spark job.
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.optimizeNullAwareAntiJoin": "false",
    "spark.sql.optimizer.disableHints": "true",
    # Later calls have other rows, and must not reuse the results of this one.
    "spark.sql.exchange.reuse": "false",
    "spark.sql.execution.reuseSubquery": "false",
    "spark.sql.optimizer.runtime.bloomFilter.enabled": "false",
    "spark.sql.optimizer.dynamicPartitionPruning.enabled": "false",
}
"""Settings with which plans for one partition need no exchange and no broadcast."""

PARTIAL = "__hg_partial"
"""The relation with the partial aggregates that the final half of a split plan reads."""


class NeedsJob(Exception):
    """A plan cannot run in the driver. The message names the operator that prevents it."""


class DriverLane:
    """The lane that prepares plans of one application to run in the driver.

    Args:
        session: the session that optimizes and plans them; its settings are changed.
        folder: the folder for row files while shared memory is full.
    """

    def __init__(self, session: SparkSession, folder: Path | None = None) -> None:
        for key, value in SETTINGS.items():
            session.conf.set(key, value)
        self._session = session
        self._folders = folders(folder)
        self.enabled = True
        """Whether plans may run in the driver. If False, every call runs as a job."""

    @cached_property
    def _class(self) -> Any:
        return java_class(self._session, "PlanRunner")

    def prepare(self, plan: Plan) -> "PlanRunner":
        """Plan a query for the driver, and return its runner.

        Raises:
            NeedsJob: the plan reads a stored table, calls Python, or needs an exchange.
        """
        self._refuse_disabled()
        java = self._class.newInstance()
        try:
            java.prepare(self._session._jsparkSession, plan.java)
        except (PySparkException, Py4JError) as error:
            raise NeedsJob(reason_of(error)) from error
        return PlanRunner(java, plan.arrow_schema, self._folders)

    def split(self, plan: Plan) -> "SplitPlan | None":
        """Split a plan that aggregates into partial aggregates and their merge.

        Returns None if the plan cannot be split.

        Raises:
            NeedsJob: the plan cannot run in the driver.
        """
        self._refuse_disabled()
        java = self._class.newInstance()
        try:
            rest = java.split(self._session._jsparkSession, plan.java)
        except (PySparkException, Py4JError) as error:
            raise NeedsJob(reason_of(error)) from error
        if rest is None:
            return None
        schema = arrow_schema(struct_of(java.schema()))
        partial = PlanRunner(java, schema, self._folders)
        final = PlanRunner(rest, plan.arrow_schema, self._folders)
        key = int(plan.plans.shared.id(java.physical()))
        windows = tuple(map(int, java.windowPlaces().split()))
        return SplitPlan(partial, final, windows, key)

    def cancel(self, tag: str) -> None:
        """Interrupt the call that runs under a tag, if there is one."""
        if self.enabled:
            self._class.newInstance().cancel(tag)

    def _refuse_disabled(self) -> None:
        if not self.enabled:
            raise NeedsJob("the driver lane is off")


class PlanRunner:
    """A physical plan that runs many times, each time over other rows.

    It is safe to use from any thread.
    """

    def __init__(self, java: Any, schema: pa.Schema, places: list[Path]) -> None:
        self._java, self.arrow_schema, self._folders = java, schema, places
        lines = [line.split("\t") for line in java.reads().splitlines()]
        self._reads = [(view, columns) for view, *columns in lines]
        self._failed = local()

    def reads(self, view: str, column: str = "") -> bool:
        """Return True if the plan reads a relation or, if `column` is set, that column of it."""
        return any(
            name == view and (not column or column in columns) for name, columns in self._reads
        )

    def __call__(self, tables: Mapping[str, pa.Table], tag: str = "") -> pa.Table:
        """Run the plan over tables and return its rows.

        Args:
            tables: a table with the columns of the relation, for each relation.
            tag: a name for this call, by which `DriverLane.cancel` can interrupt it.

        Raises:
            PySparkException, Py4JJavaError: an expression fails on a row.
        """
        inputs = [tables[view].select(columns) for view, columns in self._reads]
        for folder in self._folders[:-1]:
            try:
                return self._run(inputs, folder, tag)
            except OSError:  # it is full, or cannot be written any more
                continue
            except Py4JJavaError as error:
                if not str(error.java_exception.getClass().getName()).startswith("java.io."):
                    raise
        return self._run(inputs, self._folders[-1], tag)

    def _run(self, inputs: list[pa.Table], folder: Path, tag: str) -> pa.Table:
        with row_files(folder, len(inputs) + 1) as (output, *names):
            for name, table in zip(names, inputs, strict=True):
                write_rows(name, table)
            tag = tag or uuid4().hex
            try:
                rows = sum(table.num_rows for table in inputs)
                self._java.run("\n".join([tag, str(rows), output, *names]))
            except SPARK_ERRORS:
                number = int(self._java.failingRow(tag))
                row = FailingRow.of(self._reads[0][0], inputs[0], number) if number >= 0 else None
                self._failed.row = row
                raise
            return read_rows(output, self.arrow_schema)

    @property
    def failing_row(self) -> FailingRow | None:
        """The row of this thread's last failure; None if the plan does not pass rows one by one."""
        row: FailingRow | None = getattr(self._failed, "row", None)
        return row

    @property
    def explanation(self) -> str:
        """Spark's text of the physical plan."""
        return str(self._java.explanation())


class SplitPlan:
    """A plan that aggregates, split in two: partial aggregates of some rows, and their merge.

    Args:
        windows: the positions of the partial columns that hold the window, which may occur under
            several names.
        key: the same number for plans whose partial aggregates are the same.
    """

    def __init__(
        self, partial: PlanRunner, final: PlanRunner, windows: tuple[int, ...], key: int
    ) -> None:
        self.partial, self.final, self.windows, self.key = partial, final, windows, key
