"""Analysis of queries by Spark: what a query reads and computes, or why it is refused."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path as File
from typing import Any

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import (
    StructType,
)

from headgate.errors import QueryRefused, UnknownName
from headgate.model.display.plan_summary import Reading
from headgate.model.network.join_tree import JoinTree
from headgate.model.network.network import Condition, Path
from headgate.model.network.operator import Operator
from headgate.model.query import Query
from headgate.model.settings import Settings
from headgate.model.window import (
    HIDDEN,
    MARK,
    Axis,
    Input,
)
from headgate.spark.jvm.errors import SPARK_ERRORS, reason_of
from headgate.spark.jvm.query.admission import Admission
from headgate.spark.jvm.query.parse_errors import unparsed
from headgate.spark.jvm.query.plan_lines import join_tree, reading_of, window_calls
from headgate.spark.jvm.query.plans import Plan, Plans
from headgate.spark.jvm.query.relations import Relations
from headgate.spark.jvm.query.unknown_names import unresolved
from headgate.spark.jvm.query.window_plans import SessionPlans, WindowPlans, window_plans
from headgate.spark.jvm.time_zone import same_zone, zone_of
from headgate.spark.jvm.types import nullable


class Analyst:
    """The analyzer of queries over streams, in a session of its own.

    Args:
        settings: among them, what a text may cost and do.
        state: the state directory, which no text may read.
    """

    def __init__(
        self,
        session: SparkSession,
        settings: Settings | None = None,
        state: File | None = None,
    ) -> None:
        self._session = session
        self._admission = Admission(session, settings or Settings(), state)
        self.plans = Plans(session)
        self._relations = Relations(self.plans)

    def add_stream(self, name: str, schema: StructType, event_time: str | None = None) -> None:
        """Create a view for a stream, so that queries can read it by its name."""
        self._relations.add(name, schema, event_time)

    def drop_stream(self, name: str) -> None:
        """Forget a stream and drop its view."""
        self._relations.drop(name)

    def refuse_two_clocks(self, query: Query, inputs: Sequence[Input]) -> None:
        """Refuse a query that orders instants and wall-clock times together, unless in UTC.

        Windows are computed in microseconds since 1970, where the two kinds differ by the zone's
        offset.

        Raises:
            QueryRefused: streams of the query have event times of both kinds.
        """
        kinds = {type(self._relations.time_type(source.stream)) for source in inputs}
        by_time = inputs[0].window.by_time
        session = self._session
        if by_time and len(kinds) > 1 and not same_zone(session, zone_of(session), "UTC"):
            raise QueryRefused(
                query=query.name, clause="FROM",
                reason="orders streams by time, but the event_time of one is a TIMESTAMP and that"
                " of another a TIMESTAMP_NTZ", fix="declare all of them with one of the two types",
            )  # fmt: skip

    def read(self, query: Query, text: str, axes: Sequence[Axis] = ()) -> Reading:
        """Return Spark's reading of a text; nothing is executed.

        Args:
            text: the query's text, in which relations with a window are marked.
            axes: the axis of each window, by number.

        Raises:
            QueryRefused: Spark cannot parse or resolve the text, or it is not a query.
            UnknownName: a window follows a name that is not a stream.
        """
        parsed, frame, inputs = self._read(query, text, axes)
        plan = self.plans.of(frame)
        calls = tuple(window_calls(self.plans.queries.windowCalls(parsed)))
        lines = self.plans.queries.describe(plan.java).splitlines()
        reading = reading_of(lines, tuple(frame._jdf.columns()), calls, inputs, plan)
        return replace(reading, schema=frame._jdf.schema().json())

    def frame(self, query: Query) -> DataFrame:
        """Return a text without windows as a DataFrame; nothing is executed.

        Raises:
            QueryRefused: Spark cannot parse or resolve the text, or it is not a query.
        """
        return self._read(query, query.sql, ())[1]

    def _read(
        self, query: Query, text: str, axes: Sequence[Axis]
    ) -> tuple[Any, DataFrame, dict[int, str]]:
        try:
            parsed = self._admission.parse(query, text)
            inputs = self._inputs(query, parsed, axes)
            return parsed, _applied(query, self._analyzed(query, text, parsed)), inputs
        except ParseException as error:
            raise unparsed(query, error) from error
        except AnalysisException as error:
            raise self._unresolved(query, text, error) from error
        except SPARK_ERRORS as error:
            raise QueryRefused(
                query=query.name, clause="the text", reason=f"is refused: {reason_of(error)}",
                fix="correct the text",
            ) from error  # fmt: skip

    def path(self, query: Query, reading: Reading) -> Path:
        """Return the path of a stateless query.

        Its operators are a selection and a projection, or one operator for the whole query if that
        cannot be split.
        """
        plan, (stream,) = _plan(reading), reading.relations
        parts = plan.parts if query.apply is None else None
        if parts is None:
            whole = (Operator(kind="whole", expressions=(query.sql,)),)
            return Path(
                query=query, stream=stream, columns=reading.columns, operators=whole,
                schema=reading.schema, key=plan.key, plan=plan,
            )  # fmt: skip
        operators = [Operator(kind="project", expressions=tuple(o.text for o in parts.outputs))]
        if parts.conditions:
            predicate = " AND ".join(condition.text for condition in parts.conditions)
            operators.insert(0, Operator(kind="select", expressions=(predicate,)))
        return Path(
            query=query, stream=stream, columns=reading.columns, operators=tuple(operators),
            conditions=tuple(Condition(c.text, c.never_fails, c.calls) for c in parts.conditions),
            calls=any(output.calls for output in parts.outputs), schema=reading.schema,
            key=plan.key, plan=plan,
        )  # fmt: skip

    def segments(self, path: Path, first: Path, rest: Path) -> tuple[Path, Path]:
        """Return the two segments of a path that is cut, each with its plan."""
        assert isinstance(path.plan, Plan)
        parts, names = path.plan.parts, self._relations.schemas[path.stream].names
        assert parts is not None
        count = len(first.conditions)
        queue = self._relations.of_stream(rest.stream, path.stream)
        head, tail = parts.first(count, names), parts.rest(count, queue)
        return replace(first, plan=head, key=head.key), replace(rest, plan=tail, key=tail.key)

    def schema_of(self, path: Path) -> StructType:
        """Return the output columns of a query with their types; each may be NULL."""
        return nullable(path.schema)

    def key(self, reading: Reading) -> int:
        """Return a number that queries with the same output rows share."""
        return _plan(reading).key

    def time_column(self, reading: Reading) -> str:
        """Return the column that window(...) or session_window(...) takes; "" if there is none."""
        return str(self.plans.queries.timeColumn(_plan(reading).java))

    def over_windows(self, reading: Reading, *, at_once: bool) -> WindowPlans:
        """Return the plans of a query over windows of one stream, or windows that end together.

        Args:
            at_once: whether many windows may be computed at once.

        Raises:
            NotPossible: window(...) is applied to a value computed from several tuples.
        """
        relations = reading.relations
        return window_plans(self.plans, _plan(reading), relations, at_once=at_once)

    def numbered(self, reading: Reading, axis: Axis = "time") -> Reading:
        """Return a reading that numbers every use of a stream, as if each use had a window."""
        streams = [
            reading.inputs[int(name.removeprefix(MARK))] if name.startswith(MARK) else name
            for name in reading.relations
        ]
        relations = [
            self._relations.of_input(number, stream, len(streams), axis)
            for number, stream in enumerate(streams)
        ]
        plan = self.plans.numbered(_plan(reading), relations)
        return replace(reading, plan=plan, inputs=dict(enumerate(streams)))

    def join_tree(self, reading: Reading) -> tuple[JoinTree, dict[int, str]]:
        """Return the join tree of numbered relations, and the names of their times in the text.

        Raises:
            NotPossible: an operator reads several streams and is not a join.
        """
        event_times = self._relations.event_times
        times = [event_times[reading.inputs[number]] for number in range(len(reading.inputs))]
        return join_tree(self.plans.join_lines(_plan(reading), times, zone_of(self._session)))

    def over_pairs(self, reading: Reading, inputs: Sequence[Input], *, bounded: bool) -> Plan:
        """Return a join of tuples that lie in each other's windows.

        Args:
            bounded: whether the query's own conditions already bound the times.

        Raises:
            NotPossible: an operator needs more than the tuples that are joined.
        """
        sizes = {number: source.window.size for number, source in enumerate(inputs)}
        by_number = not inputs[0].window.by_time
        return self.plans.pairs(_plan(reading), {} if bounded else sizes, by_number=by_number)

    def over_sessions(self, reading: Reading) -> SessionPlans:
        """Return the plans of a query that groups by session.

        Raises:
            NotPossible: the query does more than that.
        """
        return SessionPlans(*self.plans.sessions(_plan(reading)))

    def over_union(self, reading: Reading) -> Plan:
        """Return a plan of a union, with arrival and time of each tuple.

        Raises:
            NotPossible: a part is not a SELECT from a stream.
        """
        return self.plans.union(_plan(reading))

    def _analyzed(self, query: Query, text: str, parsed: Any) -> DataFrame:
        queries = self.plans.queries
        try:
            return self._admission.analyze(query, queries.withInputs(parsed))
        except AnalysisException as error:
            name = (error.getMessageParameters() or {}).get("objectName", "")
            if "`window`" not in name.lower() or MARK not in text:
                raise
        # `window` is not a column of the stream: it stands for the window of the supplied rows.
        over_window = queries.withGivenWindow(self._admission.parse(query, text))
        return self._admission.analyze(query, queries.withInputs(over_window))

    def _inputs(self, query: Query, parsed: Any, axes: Sequence[Axis]) -> dict[int, str]:
        """Create views for relations with a window, and return their streams by number.

        Raises:
            QueryRefused: the text uses the option that marks windows.
            UnknownName: a window follows a name that is not a stream.
        """
        streams = list(self._relations.schemas)
        stream_by_name = {name.lower(): name for name in streams}
        names: dict[int, str] = {}
        places: dict[str, str] = {}
        for text in self.plans.queries.inputs(parsed).splitlines():
            number, line, place, is_of_table, name = text.split("\t", 4)
            numbers = map(str, range(len(axes)))
            # A relation may come more than once, as in FROM s SELECT ... SELECT ...
            if number not in numbers or places.setdefault(number, place) != place:
                raise QueryRefused(
                    query=query.name, clause=f"the option '{MARK}'",
                    line=int(line) if line else None,
                    reason="is reserved: Headgate marks windows with it",
                    fix=f"leave it out, or write a window as in FROM {name} [RANGE 10 SECONDS]",
                )  # fmt: skip
            if is_of_table == "true":
                raise QueryRefused(
                    query=query.name, clause=f"the window after {name}",
                    line=int(line) if line else None,
                    reason="follows the name of a common table, and not that of a stream",
                    fix="write it inside the common table, after the stream",
                )  # fmt: skip
            if name.lower() not in stream_by_name:
                where = f"query '{query.name}'"
                raise UnknownName(kind="stream", name=name, known=streams, where=where)
            names[int(number)] = stream_by_name[name.lower()]
        self._relations.create_views(names, axes)
        return names

    def _unresolved(self, query: Query, text: str, error: AnalysisException) -> QueryRefused:
        parameters = error.getMessageParameters() or {}
        name = parameters.get("relationName", "")
        if error.getCondition() == "TABLE_OR_VIEW_NOT_FOUND" and "/" in name:
            return self._admission.path_refused(query, name)  # a view reads the path
        return unresolved(query, text, error, self._tables, self._admission.functions)

    def _tables(self) -> list[str]:
        """Return the names of streams, and of the session's tables and views."""
        tables = [table.name for table in self._session.catalog.listTables()]
        return [*self._relations.schemas, *(name for name in tables if not name.startswith(HIDDEN))]


def _plan(reading: Reading) -> Plan:
    assert isinstance(reading.plan, Plan)
    return reading.plan


def _applied(query: Query, frame: DataFrame) -> DataFrame:
    """Apply the query's `apply` function to the DataFrame of its text."""
    if query.apply is None:
        return frame
    fix = "pass a function that takes a DataFrame and returns a DataFrame"
    try:
        result = query.apply(frame)
    except Exception as error:
        reason = f"fails: {reason_of(error)}"
        raise QueryRefused(query=query.name, clause="apply", reason=reason, fix=fix) from error
    if not isinstance(result, DataFrame):
        reason = f"returns {type(result).__name__}, not a DataFrame"
        raise QueryRefused(query=query.name, clause="apply", reason=reason, fix=fix)
    return result
