"""Spark's logical plans: what a query computes, independent of where and when it runs."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from headgate.model.display.plan_summary import NotPossible
from headgate.spark.jvm.java_classes import java_class
from headgate.spark.jvm.types import arrow_schema


@dataclass(frozen=True)
class ConditionPart:
    """One of the conditions that a query joins by AND.

    Args:
        text: the SQL, for people to read.
        never_fails: whether Spark can compute the condition for every row.
        calls: whether it calls a function.
    """

    text: str
    never_fails: bool
    calls: bool


@dataclass(frozen=True)
class OutputPart:
    """One output column.

    Args:
        column: the column of the stream, if the output is one; None if it is computed.
        calls: whether it calls a function.
        text: the SQL, for people to read.
    """

    name: str
    column: str | None
    calls: bool
    text: str


def struct_of(text: str) -> StructType:
    """Return the struct type of a JSON text of Spark's."""
    schema: StructType = StructType.fromJson(json.loads(text))
    return schema


class Plan:
    """An analyzed plan over relations whose rows are supplied at every call."""

    def __init__(self, java: Any, plans: "Plans") -> None:
        self.java, self.plans = java, plans

    @cached_property
    def schema(self) -> StructType:
        """The Spark schema of the output rows."""
        return struct_of(self.java.schema().json())

    @cached_property
    def arrow_schema(self) -> pa.Schema:
        """The Arrow schema of the output rows."""
        return arrow_schema(self.schema)

    @cached_property
    def key(self) -> int:
        """A number that plans with the same output rows share; names of columns may differ."""
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
        """Conditions and outputs; None if the plan does more than filter and project a stream."""
        java = self.plans.shared.parts(self.java)
        return None if java is None else Parts(java, self.plans)

    def frame(self, session: SparkSession, frames: Mapping[str, DataFrame]) -> DataFrame:
        """Return a DataFrame that runs the plan over DataFrames for its relations."""
        names = list(frames)
        inputs = [frames[name]._jdf for name in names]
        bound = self.plans.queries.bound(session._jsparkSession, self.java, names, inputs)
        return DataFrame(bound, session)

    def select(self, *texts: str) -> "Plan":
        """Return a plan that computes SQL expressions over the output columns."""
        return self.plans.of(self.plans.unbound(self).selectExpr(*texts))

    def named(self, columns: Sequence[str]) -> "Plan":
        """Return the plan with other names for its columns."""
        return self.plans.of(self.plans.unbound(self).toDF(*columns))


class Parts:
    """The parts of a query over one stream: its conditions in order, and its outputs."""

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
        """A number for the longest function call, the same for equal calls; 0 if there is none."""
        return int(self.plans.shared.longestCall(self.java))

    @cached_property
    def form(self) -> Any | None:
        """The query without the constants of its comparisons; None if it has no constants."""
        return self.plans.shared.form(self.java)

    @cached_property
    def form_key(self) -> int | None:
        """A number for the form, the same for queries that differ only in constants."""
        return None if self.form is None else int(_field(self.form, "id"))

    def ordered(self, order: Sequence[int]) -> "Parts":
        """Return the parts with their conditions in another order."""
        return Parts(self.java.ordered(" ".join(map(str, order))), self.plans)

    def first(self, count: int, columns: Sequence[str]) -> Plan:
        """Return a plan that applies the first conditions and keeps columns of the stream."""
        return Plan(self.java.first(count, "\t".join(columns)), self.plans)

    def rest(self, count: int, relation: DataFrame) -> Plan:
        """Return a plan for what follows the first conditions, over another relation."""
        plan = relation._jdf.queryExecution().analyzed()
        return Plan(self.java.rest(count, plan), self.plans)

    def condition(self, place: int | None) -> Plan:
        """Return a plan with the value of one condition as column `holds`; TRUE for None."""
        return Plan(self.java.condition(-1 if place is None else place), self.plans)


@dataclass(frozen=True)
class SharedPlan:
    """A plan for several queries.

    Args:
        driver: what the driver lane computes for every tuple; None if nothing is computed.
        job: the same for a job, with the columns of the stream that members need.
        members: for each member, its bit in the mask or its line in the table of constants (−1 for
            all rows), and its columns; a column of the stream begins with "=".
    """

    driver: Plan | None
    job: Plan
    members: tuple[tuple[int, tuple[str, ...]], ...]


class Plans:
    """The Java classes that read, split and rewrite the plans of one application."""

    def __init__(self, session: SparkSession) -> None:
        self.session = session
        self.queries = java_class(session, "QueryPlans").newInstance()
        self.shared = java_class(session, "SharedPlans").newInstance()
        self._relations = java_class(session, "Relations").newInstance()
        self._join_times = java_class(session, "JoinTimes").newInstance()
        self._row_plans = java_class(session, "RowPlans").newInstance()

    def relation(self, name: str, schema: StructType) -> DataFrame:
        """Return a relation whose rows are supplied, under its name, at every call."""
        frame = self._relations.relation(self.session._jsparkSession, schema.json(), name)
        return DataFrame(frame, self.session)

    def of(self, frame: DataFrame) -> Plan:
        """Return the plan of a DataFrame, without aliases of relations, views and CTEs."""
        return Plan(self.queries.plain(frame._jdf.queryExecution().analyzed()), self)

    def unbound(self, plan: Plan) -> DataFrame:
        """Return the DataFrame of a plan over relations that have no rows yet."""
        return DataFrame(self.queries.frame(self.session._jsparkSession, plan.java), self.session)

    def pairs(self, plan: Plan, sizes: Mapping[int, int], *, by_number: bool) -> Plan:
        """Return a join of tuples that lie in each other's windows, with its hidden columns.

        Args:
            sizes: the window size of each input, by number; empty if the query's own conditions
                bound the times.
            by_number: whether the windows are ROWS windows.
        """
        jvm: Any = self.session._jvm
        java = jvm.java.util.HashMap()
        for number, size in sizes.items():
            java.put(str(number), size)
        return self._rewritten(lambda: self.queries.pairs(plan.java, java, by_number))[0]

    def numbered(self, plan: Plan, relations: Sequence[DataFrame]) -> Plan:
        """Return a plan in which each relation is replaced by another, in the order of the plan."""
        frames = [relation._jdf for relation in relations]
        return Plan(self._join_times.numbered(plan.java, frames), self)

    def join_lines(self, plan: Plan, times: Sequence[str | None], zone: str) -> list[str]:
        """Return lines that describe how numbered relations are joined (`JoinTimes.describe`).

        Raises:
            NotPossible: an operator reads several streams and is not a join.
        """
        text = _possible(lambda: self._join_times.describe(plan.java, list(times), zone))
        return str(text).splitlines()

    def of_rows(self, plan: Plan) -> list[Plan]:
        """Return what a plan computes from single rows before it combines them.

        There is a plan for every relation whose rows can break an expression.
        """
        java = self._row_plans.of(self.session._jsparkSession, plan.java)
        return [Plan(row_plan, self) for row_plan in java]

    def union(self, plan: Plan) -> Plan:
        """Return a union with arrival and time of each tuple as its last columns."""
        return self._rewritten(lambda: self.queries.union(plan.java))[0]

    def windows(self, plan: Plan) -> tuple[Plan, bool]:
        """Return a plan that computes each window separately, with the window as its last column.

        The second value is True if a window has a result even if none of its rows passes WHERE.
        """
        return self._rewritten(lambda: self.queries.windows(plan.java))

    def sessions(self, plan: Plan) -> tuple[Plan, Plan]:
        """Return a plan with the session as its last column, and a plan of all sessions."""
        ended = self._rewritten(lambda: self.queries.sessions(plan.java))[0]
        return ended, self._rewritten(lambda: self.queries.allSessions(plan.java))[0]

    def one_window(self, plan: Plan) -> Plan:
        """Return a plan in which window(...) is the window of the supplied rows.

        Raises:
            NotPossible: window(...) is applied to a value computed from several tuples.
        """
        return self._rewritten(lambda: self.queries.overGivenWindows(plan.java))[0]

    def mask_group(self, members: Sequence[Parts]) -> SharedPlan:
        """Return one plan for several queries over one stream, with a bit for each query."""
        return self._shared(self.shared.group([parts.java for parts in members]))

    def constants_group(self, forms: Sequence[Any], row_column: str) -> SharedPlan:
        """Return a join of a stream with a table of the constants in which queries differ."""
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
    """Call Java and return the result.

    Raises:
        NotPossible: the Java call raised its NotPossible.
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
    """Return a schema as DDL in Spark's syntax."""
    return str(session._jsparkSession.parseDataType(schema.json()).toDDL())
