"""Spark's logical plans: what a query computes, before anyone decides where and when."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from headgate.model.reading import NotPossible
from headgate.spark.jvm.java_classes import java_class
from headgate.spark.jvm.types import arrow_schema


@dataclass(frozen=True)
class ConditionPart:
    """One of the conditions that a query joins by AND; the text is for people."""

    text: str
    never_fails: bool
    calls: bool


@dataclass(frozen=True)
class OutputPart:
    """One output column: the column of the stream that it is, if it is one, and its text."""

    name: str
    column: str | None
    calls: bool
    text: str


def struct_of(text: str) -> StructType:
    """Return a type of Spark's from its JSON."""
    schema: StructType = StructType.fromJson(json.loads(text))
    return schema


class Plan:
    """An analyzed plan over relations whose rows are handed over at every call."""

    def __init__(self, java: Any, plans: "Plans") -> None:
        self.java, self.plans = java, plans

    @cached_property
    def schema(self) -> StructType:
        """Spark's type of the rows that come out."""
        return struct_of(self.java.schema().json())

    @cached_property
    def arrow_schema(self) -> pa.Schema:
        """Arrow's type of the rows that come out."""
        return arrow_schema(self.schema)

    @cached_property
    def key(self) -> int:
        """A number, the same for plans that give the same rows; names of columns may differ."""
        return int(self.plans.shared.id(self.java))

    @cached_property
    def relations(self) -> dict[str, StructType]:
        """The relations that the plan reads, with their columns."""
        lines = [
            line.split("\t", 1) for line in self.plans.queries.relations(self.java).splitlines()
        ]
        return {name: struct_of(schema) for name, schema in lines}

    @cached_property
    def parts(self) -> "Parts | None":
        """Conditions and outputs; None where it does more than filter and project a stream."""
        java = self.plans.shared.parts(self.java)
        return None if java is None else Parts(java, self.plans)

    def frame(self, session: SparkSession, frames: Mapping[str, DataFrame]) -> DataFrame:
        """Return the frame of the plan, over frames for its relations."""
        names = list(frames)
        inputs = [frames[name]._jdf for name in names]
        bound = self.plans.queries.bound(session._jsparkSession, self.java, names, inputs)
        return DataFrame(bound, session)

    def select(self, *texts: str) -> "Plan":
        """Return a plan of expressions over the output columns."""
        return self.plans.of(self.plans.unbound(self).selectExpr(*texts))

    def named(self, columns: Sequence[str]) -> "Plan":
        """Return the plan with other names of its columns."""
        return self.plans.of(self.plans.unbound(self).toDF(*columns))


class Parts:
    """A query over one stream, taken apart by Spark: conditions in order, and outputs."""

    def __init__(self, java: Any, plans: "Plans") -> None:
        self.java, self.plans = java, plans
        conditions, outputs = [], []
        for line in java.describe().splitlines():
            kind, *words = line.split("\t")
            if kind == "C":
                never_fails, calls, text = words
                conditions.append(ConditionPart(text, never_fails == "true", calls == "true"))
            else:
                column, calls, name, text = words
                outputs.append(OutputPart(name, column or None, calls == "true", text))
        self.conditions, self.outputs = tuple(conditions), tuple(outputs)

    @cached_property
    def longest_call(self) -> int:
        """A number for the longest function call, the same for equal calls; 0 for none."""
        return int(self.plans.shared.longestCall(self.java))

    @cached_property
    def form(self) -> Any | None:
        """The query without the constants of its comparisons; None where it has none."""
        return self.plans.shared.form(self.java)

    @cached_property
    def form_key(self) -> int | None:
        """A number for the form, the same for queries that differ in constants alone."""
        return None if self.form is None else int(_field(self.form, "id"))

    def ordered(self, order: Sequence[int]) -> "Parts":
        """Return the parts with their conditions in another order."""
        return Parts(self.java.ordered(" ".join(map(str, order))), self.plans)

    def first(self, count: int, columns: Sequence[str]) -> Plan:
        """Return a plan of the first conditions, which passes on columns of the stream."""
        return Plan(self.java.first(count, "\t".join(columns)), self.plans)

    def rest(self, count: int, relation: DataFrame) -> Plan:
        """Return a plan of what follows behind the first conditions, over another relation."""
        plan = relation._jdf.queryExecution().analyzed()
        return Plan(self.java.rest(count, plan), self.plans)

    def condition(self, place: int | None) -> Plan:
        """Return a plan with the value of one condition, or TRUE, as column `holds`."""
        return Plan(self.java.condition(-1 if place is None else place), self.plans)


@dataclass(frozen=True)
class SharedPlan:
    """A plan for several queries.

    Args:
        driver: what the driver lane computes for every tuple; None where nothing is computed.
        job: the same for a job, with the columns of the stream that are wanted.
        members: a member's bit or line, −1 for all rows, and its columns; those of the stream begin
            with "=".
    """

    driver: Plan | None
    job: Plan
    members: tuple[tuple[int, tuple[str, ...]], ...]


class Plans:
    """Reads, takes apart and rewrites plans of one application."""

    def __init__(self, session: SparkSession) -> None:
        self.session = session
        self.queries = java_class(session, "QueryPlans").newInstance()
        self.shared = java_class(session, "SharedPlans").newInstance()
        self._relations = java_class(session, "Relations").newInstance()
        self._join_times = java_class(session, "JoinTimes").newInstance()

    def relation(self, name: str, schema: StructType) -> DataFrame:
        """Return a relation whose rows are handed over, under its name, at every call."""
        frame = self._relations.relation(self.session._jsparkSession, schema.json(), name)
        return DataFrame(frame, self.session)

    def of(self, frame: DataFrame) -> Plan:
        """Return the plan of a frame, without aliases of relations, views and CTEs."""
        return Plan(self.queries.plain(frame._jdf.queryExecution().analyzed()), self)

    def unbound(self, plan: Plan) -> DataFrame:
        """Return the frame of a plan over relations without rows."""
        return DataFrame(self.queries.frame(self.session._jsparkSession, plan.java), self.session)

    def pairs(self, plan: Plan, sizes: Mapping[int, int], *, by_number: bool) -> Plan:
        """Return a join whose tuples lie in each other's windows, with its hidden columns.

        Args:
            sizes: of the windows; empty where the join's own conditions bound the times.
        """
        jvm: Any = self.session._jvm
        java = jvm.java.util.HashMap()
        for number, size in sizes.items():
            java.put(str(number), size)
        return self._rewritten(lambda: self.queries.pairs(plan.java, java, by_number))[0]

    def numbered(self, plan: Plan, relations: Sequence[DataFrame]) -> Plan:
        """Return a plan that reads other relations, one for each in the order of the plan."""
        frames = [relation._jdf for relation in relations]
        return Plan(self._join_times.numbered(plan.java, frames), self)

    def join_lines(self, plan: Plan, times: Sequence[str | None], zone: str) -> list[str]:
        """Return how relations with a number are joined, line by line (`JoinTimes.describe`).

        Raises:
            NotPossible: an operator is no join, and reads several streams.
        """
        text = _possible(lambda: self._join_times.describe(plan.java, list(times), zone))
        return str(text).splitlines()

    def union(self, plan: Plan) -> Plan:
        """Return a union with the time of each tuple as its last column."""
        return self._rewritten(lambda: self.queries.union(plan.java))[0]

    def windows(self, plan: Plan) -> tuple[Plan, bool]:
        """Return a plan that computes each window by itself, with the window as its last column.

        The second value says whether a window has a result although no row of it passes WHERE.
        """
        return self._rewritten(lambda: self.queries.windows(plan.java))

    def sessions(self, plan: Plan) -> tuple[Plan, Plan]:
        """Return a plan with each session as its last column, and one of all sessions."""
        ended = self._rewritten(lambda: self.queries.sessions(plan.java))[0]
        return ended, self._rewritten(lambda: self.queries.allSessions(plan.java))[0]

    def one_window(self, plan: Plan) -> Plan:
        """Return a plan in which window(...) is the window of the rows that are handed over.

        Raises:
            NotPossible: window(...) is over what is computed of several tuples.
        """
        return self._rewritten(lambda: self.queries.overGivenWindows(plan.java))[0]

    def mask_group(self, members: Sequence[Parts]) -> SharedPlan:
        """Return a plan with a bit for each of some queries over one stream."""
        return self._shared(self.shared.group([parts.java for parts in members]))

    def constants_group(self, forms: Sequence[Any], row_column: str) -> SharedPlan:
        """Return a join with a table of the constants in which some queries differ."""
        return self._shared(self.shared.constants(list(forms), row_column))

    def _shared(self, group: Any) -> SharedPlan:
        lines = [line.split("\t") for line in group.describe().splitlines()]
        driver = _field(group, "driver")
        return SharedPlan(
            None if driver is None else Plan(driver, self),
            Plan(_field(group, "job"), self),
            tuple((int(number), tuple(columns)) for number, *columns in lines),
        )

    def _rewritten(self, rewrite: Any) -> tuple[Plan, bool]:
        carried = _possible(rewrite)
        return Plan(_field(carried, "plan"), self), bool(_field(carried, "always"))


def _possible(call: Callable[[], Any]) -> Any:
    """Return what a call of Java returns.

    Raises:
        NotPossible: Java says so.
    """
    try:
        return call()
    except Py4JJavaError as error:
        if "NotPossible" not in error.java_exception.getClass().getName():
            raise
        operator, _, line = error.java_exception.getMessage().partition("\t")
        raise NotPossible(operator, int(line) if line else None) from error


def _field(java: Any, name: str) -> Any:
    return java.getClass().getField(name).get(java)


def ddl(session: SparkSession, schema: StructType) -> str:
    """Return a schema as Spark's DDL."""
    return str(session._jsparkSession.parseDataType(schema.json()).toDDL())
