"""A text over tables of Arrow: in the driver where that can be, else by a job."""

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import (
    DataType,
    DoubleType,
    LongType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from headgate.model.plan import Lane
from headgate.model.query import Apply
from headgate.model.window import HIDDEN
from headgate.spark.jvm.arrow_frames import collected, frame_of
from headgate.spark.local_plan import AGGREGATED, Aggregation, LocalPlan
from headgate.spark.local_rows import TooMuch
from headgate.spark.projection import NotPlain
from headgate.spark.refusals import SPARK_ERRORS

log = logging.getLogger("headgate.spark")

MOST_ROWS = 200_000
"""Rows above which a query is left to a job: that has all cores."""


class SmallQuery:
    """One query, asked again and again over other rows of the same views.

    Args:
        text: its SQL over the views.
        columns: the names of what comes out; hidden ones keep theirs.
        sink_text: the SQL of what a sink of text puts out instead of them.
        fields: gives the columns of a view that are those of its stream.
        lane: `job` for every call, or the quicker.
        apply: a function that makes the results of what the text gives; it needs a job.
    """

    def __init__(
        self,
        text: str,
        columns: Sequence[str],
        sink_text: str | None,
        fields: Callable[[str], Sequence[StructField]],
        lane: Lane | None,
        apply: Apply | None = None,
    ) -> None:
        self._text, self._columns, self._sink_text = text, tuple(columns), sink_text
        self._fields, self._apply = fields, apply
        self._local: LocalPlan | None = None
        self._driver_can: bool | None = False if lane == "job" or apply else None
        self._turn = threading.Lock()
        self.no_rows: pa.Table | None = None
        """No results, of the right columns, once somebody has asked for them."""

    def __call__(
        self,
        session: SparkSession,
        views: Mapping[str, pa.Table],
        known: dict[Any, Any] | None = None,
    ) -> pa.Table:
        """Gives the rows that come out, of nullable columns.

        Args:
            known: what other queries have found over the same tables.
        """
        small = sum(each.num_rows for each in views.values()) <= MOST_ROWS
        plan = self._plan(session, views) if small else None
        if plan is not None:
            try:
                return _nullable(plan(views, known))
            except TooMuch as error:
                log.debug("a query is left to a job: %s", error)
            except Exception as error:
                made = self._by_job(session, views)  # which fails, too, where a row is at fault
                log.warning("a query runs as jobs from now on, the driver cannot: %s", error)
                self._driver_can, self._local = False, None
                return made
        return self._by_job(session, views)

    @property
    def lane(self) -> Lane:
        """The way that small calls take."""
        return "driver" if self._driver_can else "job"

    def aggregation(
        self, session: SparkSession, views: Mapping[str, pa.Table]
    ) -> Aggregation | None:
        """Gives how it aggregates, where that can be done by pane."""
        plan = self._plan(session, views)
        return None if plan is None else plan.aggregation

    def of_aggregates(self, table: pa.Table) -> pa.Table:
        """Gives the rows that come out where the aggregates are known."""
        assert self._local is not None
        return _nullable(self._local({AGGREGATED: table}))

    def _by_job(self, session: SparkSession, views: Mapping[str, pa.Table]) -> pa.Table:
        for name, table in views.items():
            if not table.num_rows:
                table = table.schema.empty_table()  # pyspark cannot take maps without any chunk
            frame = frame_of(session, table, self._schema(name, table))
            frame.coalesce(1).createOrReplaceTempView(name)
        frame = session.sql(self._text)
        if self._apply is not None:
            frame = self._apply(frame)
        frame = frame.toDF(*self._named(frame.columns))
        return collected(self._for_sink(frame))

    def _for_sink(self, frame: DataFrame) -> DataFrame:
        hidden = [name for name in frame.columns if name.startswith(HIDDEN)]
        return frame.selectExpr(self._sink_text, *hidden) if self._sink_text else frame

    def _plan(self, session: SparkSession, views: Mapping[str, pa.Table]) -> LocalPlan | None:
        """Gives the plan for the driver, made when it is first wanted; None where there is none."""
        with self._turn:
            if self._driver_can is None:
                schemas = {name: self._schema(name, table) for name, table in views.items()}
                try:
                    self._local = LocalPlan(session, self._text, schemas, self._shown)
                except (NotPlain, *SPARK_ERRORS) as error:
                    log.debug("a query cannot run in the driver: %s", error)
                self._driver_can = self._local is not None
            return self._local

    def _shown(self, frame: DataFrame) -> DataFrame:
        return self._for_sink(frame.toDF(*self._named(frame.columns)))

    def _named(self, found: Sequence[str]) -> list[str]:
        """Gives the query's names for what it puts out, and hidden ones as they are."""
        names = iter(self._columns)
        return [name if name.startswith(HIDDEN) else next(names) for name in found]

    def _schema(self, view: str, table: pa.Table) -> StructType:
        own = {field.name: field for field in self._fields(view)}
        return StructType(
            [
                own.get(field.name) or StructField(field.name, _added(field.type))
                for field in table.schema
            ]
        )


def _added(kind: pa.DataType) -> DataType:
    """Gives Spark's type of a column that is not the stream's."""
    if pa.types.is_struct(kind):
        return StructType([StructField(each.name, _added(each.type)) for each in kind])
    if pa.types.is_timestamp(kind):
        return TimestampNTZType() if kind.tz is None else TimestampType()
    return DoubleType() if pa.types.is_floating(kind) else LongType()


def _nullable(table: pa.Table) -> pa.Table:
    """Gives rows of which every column may have NULL: parts by either lane fit together."""
    return table.cast(pa.schema([field.with_nullable(True) for field in table.schema]))
