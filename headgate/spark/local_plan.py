"""Spark's plan for a text, run in the driver: its expressions by its own code, no job."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from headgate.spark.local_code import Code, numbered
from headgate.spark.local_rows import Encoded, TooMuch, aggregated, grouped, joined, merged
from headgate.spark.local_sessions import with_sessions
from headgate.spark.plan_expressions import (
    is_window,
    items_of,
    not_null,
    pick_of,
    references_of,
    struct_of,
    text_of,
    window_in,
)
from headgate.spark.projection import NotPlain, module_of
from headgate.spark.types import arrow_schema

_CODE = "org.apache.spark.sql.catalyst.expressions.UnsafeProjection"
_AGGREGATION = "org.apache.spark.sql.catalyst.planning.PhysicalAggregation"
_EQUAL_KEYS = "org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys"

_SESSION = "spark.sessionWindow"
"""What marks a key that Spark merges with those that it overlaps."""


@dataclass(frozen=True)
class Given:
    """What a plan runs over.

    Args:
        tables: the rows of each view.
        known: which rows conditions and joins have been found to leave, of equal parts of other
            queries over the same tables, too.
        called: what the rows of a view are called in it, where another table may have them too.
    """

    tables: Mapping[str, pa.Table]
    known: dict[Any, Any] = field(default_factory=dict)
    called: Mapping[str, Any] = field(default_factory=dict)


Run = Callable[[Given], pa.Table]

AGGREGATED = "__hg_aggregated"
"""The name under which a plan is given its aggregates, where they are known already."""


@dataclass(frozen=True)
class Relation:
    """What a node gives: its attributes, as Spark's sequence, and how its rows are made.

    Args:
        names: where attributes come from, by their number: the same for equal ones of two queries.
        which: tells which rows these are, the same for equal parts over the same tables; None
            where that is not known.
    """

    attributes: Any
    run: Run
    names: Mapping[int, str] = field(default_factory=dict)
    which: Callable[[Given], Any] = lambda given: None


@dataclass(frozen=True)
class Aggregation:
    """The one aggregate of a plan over one view, whose groups have a window each.

    Args:
        signature: tells what is aggregated and how, the same for queries that do alike.
        rows: gives, for rows of the view, the keys and what is aggregated, by what is known of
            these rows.
        keys, window: how many keys there are, and which of them is the window.
        kinds, arguments: the functions, and where what they aggregate stands.
        schema: of keys and results.
    """

    signature: str
    rows: Callable[[pa.Table, dict[Any, Any]], pa.Table]
    keys: int
    window: int
    kinds: tuple[str, ...]
    arguments: tuple[int, ...]
    schema: pa.Schema


class LocalPlan:
    """A query over small tables that Spark has analysed and optimised once.

    Projections, filters, aggregates, joins and unions are run; whatever else a plan has makes it
    not plain. Expressions are evaluated by the code that Spark generates for them. Only what it has
    no expression for is done here: finding equal keys, counting, adding, comparing.

    Args:
        text: the query, over views.
        schemas: the columns of each view.
        shown: gives what is wanted of the query's rows.

    Raises:
        NotPlain: the plan needs a job.
    """

    def __init__(
        self,
        session: SparkSession,
        text: str,
        schemas: Mapping[str, StructType],
        shown: Callable[[DataFrame], DataFrame] = lambda frame: frame,
    ) -> None:
        self._session = session
        self._views: dict[int, str] = {}
        self._code = module_of(session, _CODE)
        for name, schema in schemas.items():
            frame = session.createDataFrame(session.sparkContext.emptyRDD(), schema)
            self._views[frame._jdf.queryExecution().optimizedPlan().rdd().id()] = name
            frame.createOrReplaceTempView(name)
        frame = shown(session.sql(text))
        self._names = frame.columns
        self.aggregation: Aggregation | None = None
        """What can be aggregated by pane."""
        self._schema = arrow_schema(frame.schema)
        plan = frame._jdf.queryExecution().optimizedPlan()
        if plan.subqueriesAll().size():
            raise NotPlain("a subquery")
        self._root = self._relation(plan)

    def __call__(
        self, tables: Mapping[str, pa.Table], known: dict[Any, Any] | None = None
    ) -> pa.Table:
        """Gives the query's rows over tables, by the names of the views.

        Args:
            known: what other queries have found over the same tables, which must live as long.

        Raises:
            TooMuch: it is better left to a job.
            Py4JJavaError: an expression fails on a row.
        """
        made = self._root.run(Given(tables, {} if known is None else known))
        return made.rename_columns(self._names).cast(self._schema)

    def _relation(self, plan: Any) -> Relation:
        kind = plan.nodeName()
        make = {
            "LogicalRDD": self._leaf, "Project": self._project, "Filter": self._filter,
            "Aggregate": self._aggregate, "Join": self._join, "Union": self._union,
        }.get(kind)  # fmt: skip
        if make is None:
            raise NotPlain(kind)
        return make(plan)

    def _leaf(self, plan: Any) -> Relation:
        view = self._views.get(plan.rdd().id())
        if view is None:
            raise NotPlain("LogicalRDD")
        columns = items_of(plan.output())
        names = [each.name() for each in columns]
        return Relation(
            plan.output(),
            lambda given: given.tables[view].select(names),
            {each.exprId().id(): f"{view}.{each.name()}" for each in columns},
            lambda given: (view, given.called.get(view, id(given.tables[view]))),
        )

    def _project(self, plan: Any) -> Relation:
        child = self._relation(plan.child())
        code = self._compiled(plan.projectList(), child.attributes)
        names = {
            each.exprId().id(): text_of(_inside(each), child.names)
            for each in items_of(plan.projectList())
        }
        return Relation(plan.output(), lambda given: code(child.run(given)), names, child.which)

    def _filter(self, plan: Any) -> Relation:
        child = self._relation(plan.child())
        passes = self._condition(plan.condition(), child.attributes)
        condition = text_of(plan.condition(), child.names)

        def which(given: Given) -> Any:
            return _those("passed", condition, child.which(given))

        def run(given: Given) -> pa.Table:
            rows = child.run(given)
            return rows.filter(_once(given, which, lambda: pa.array(passes(rows))))

        return Relation(plan.output(), run, child.names, which)

    def _union(self, plan: Any) -> Relation:
        children = [self._relation(each) for each in items_of(plan.children())]
        schema = self._schema_of(plan.output())

        def run(given: Given) -> pa.Table:
            made = [child.run(given).rename_columns(schema.names) for child in children]
            return pa.concat_tables([each.cast(schema) for each in made])

        return Relation(plan.output(), run)

    def _aggregate(self, plan: Any) -> Relation:
        found = module_of(self._session, _AGGREGATION).unapply(plan)
        if found.isEmpty():
            raise NotPlain("Aggregate")
        keys, functions, results, below = (
            found.get()._1(), found.get()._2(), found.get()._3(), found.get()._4()
        )  # fmt: skip
        sessions = [
            at
            for at, each in enumerate(items_of(keys))
            if each.toAttribute().metadata().contains(_SESSION)
        ]
        child = self._relation(below)
        made = plan.output().take(0)
        inputs = keys.take(0)
        for each in items_of(keys):
            inputs, made = inputs.appended(each), made.appended(each.toAttribute())
        kinds: list[tuple[str, int, Any]] = []
        for each in items_of(functions):
            function = each.aggregateFunction()
            kind, arguments = function.nodeName(), list(items_of(function.children()))
            # count(1) counts every row; of others the first argument counts, if it is the only one.
            if each.isDistinct() or each.filter().isDefined() or len(arguments) != 1:
                raise NotPlain(function.toString())
            kinds.append((kind, inputs.size(), each.resultAttribute().dataType().catalogString()))
            inputs, made = inputs.appended(arguments[0]), made.appended(each.resultAttribute())
        count = keys.size()
        before = self._compiled(inputs, child.attributes)
        schema, types = self._schema_of(made), self._schema_of_types(inputs)
        Encoded.refuse(types[:count])
        for kind, at, result in kinds:
            if not aggregated.can(kind, types[at], result):
                raise NotPlain(kind)
            if sessions and kind in ("Sum", "Average") and pa.types.is_floating(types[at]):
                raise NotPlain(kind)  # Spark adds in the order of time
        after = self._compiled(results, made)
        signature = self._signature(below, keys, functions)
        window = window_in(keys)
        if self.aggregation is not None:
            self.aggregation = None  # one above another: what closes below is not all there is
        elif (
            window is not None
            and not sessions
            and signature is not None
            and all(merged.can(kind, types[at]) for kind, at, _ in kinds)
        ):
            view = next(iter(self._views.values()))
            self.aggregation = Aggregation(
                signature,
                # The window, which others have not alike, is in no condition.
                lambda rows, known: before(child.run(Given({view: rows}, known, {view: ""}))),
                count, window,
                tuple(kind for kind, *_ in kinds), tuple(at for _, at, _ in kinds), schema,
            )  # fmt: skip

        def run(given: Given) -> pa.Table:
            if AGGREGATED in given.tables:
                return after(given.tables[AGGREGATED])
            rows = before(child.run(given))
            for at in sessions:
                rows = with_sessions(rows, count, at)
            if not count and not rows.num_rows:
                raise TooMuch("no rows, no keys")
            groups = grouped([rows.column(at) for at in range(count)], rows.num_rows)
            columns = [rows.column(at).take(groups.first) for at in range(count)]
            columns += [
                aggregated(kind, rows.column(at), groups, schema.field(count + number).type)
                for number, (kind, at, _) in enumerate(kinds)
            ]
            return after(pa.Table.from_arrays(columns, schema=schema))

        return Relation(plan.output(), run)

    def _signature(self, plan: Any, keys: Any, functions: Any) -> str | None:
        """Gives what is aggregated and how as a text; None where it depends on the window."""
        words = [each.sql() for each in (*items_of(keys), *items_of(functions))]
        watched = [
            argument for each in items_of(functions) for argument in items_of(each.children())
        ]
        watched += [each for each in items_of(keys) if not is_window(each)]
        while plan.nodeName() != "LogicalRDD":
            if plan.nodeName() == "Filter":
                words.append(plan.condition().sql())
                watched.append(plan.condition())
            elif plan.nodeName() == "Project":
                words += [each.sql() for each in items_of(plan.projectList())]
                watched += [each for each in items_of(plan.projectList()) if not is_window(each)]
            else:
                return None
            plan = plan.child()
        windows = {each.exprId().id() for each in items_of(plan.output()) if is_window(each)}
        if len(self._views) > 1 or windows.intersection(
            name for each in watched for name in references_of(each)
        ):
            return None
        return "|".join(words)

    def _join(self, plan: Any) -> Relation:
        found = module_of(self._session, _EQUAL_KEYS).unapply(plan)
        how = plan.joinType().toString()
        if found.isEmpty() or how not in joined.KINDS:
            raise NotPlain(f"Join {how}")
        keys = found.get()
        left, right = self._relation(plan.left()), self._relation(plan.right())
        lefts, rights = self._schema_of_types(keys._2()), self._schema_of_types(keys._3())
        Encoded.refuse([*lefts, *rights])
        left_keys = self._compiled(keys._2(), left.attributes)
        right_keys = self._compiled(keys._3(), right.attributes)
        both = left.attributes
        for each in items_of(right.attributes):
            both = both.appended(each)
        other = keys._4()
        holds = self._condition(other.get(), both) if other.isDefined() else None
        schema = self._schema_of(both)

        def rows_of(a: pa.Table, b: pa.Table, at: Any, of: Any) -> pa.Table:
            columns = [*a.take(at).columns, *b.take(of).columns]
            return pa.Table.from_arrays(columns, names=schema.names)

        names = {**left.names, **right.names}
        equal = [text_of(each, names) for side in (keys._2(), keys._3()) for each in items_of(side)]
        condition = "" if plan.condition().isEmpty() else text_of(plan.condition().get(), names)

        def pairs_of(a: pa.Table, b: pa.Table, given: Given) -> tuple[Any, Any]:
            # Found once for all that join these rows by these keys, whatever else they ask.
            pairs = _once(
                given,
                lambda given: _those(*equal, left.which(given), right.which(given)),
                lambda: joined.pairs(left_keys(a).columns, right_keys(b).columns),
            )
            if holds is not None:
                passed = holds(rows_of(a, b, *pairs))
                pairs = pairs[0][passed], pairs[1][passed]
            return joined.of_kind(how, pairs, a.num_rows, b.num_rows)

        def which(given: Given) -> Any:
            return _those(how, condition, left.which(given), right.which(given))

        def run(given: Given) -> pa.Table:
            a, b = left.run(given), right.run(given)
            at, of = _once(given, which, lambda: pairs_of(a, b, given))
            return a.take(at) if of is None else rows_of(a, b, at, of)

        return Relation(plan.output(), run, names, which)

    def _condition(
        self, condition: Any, attributes: Any
    ) -> Callable[[pa.Table], NDArray[np.bool_]]:
        places = {each.exprId().id(): at for at, each in enumerate(items_of(attributes))}
        if (known := not_null(condition, places)) is not None:
            return lambda rows: np.logical_and.reduce(
                [rows.column(at).is_valid().to_numpy() for at in known]
            )
        code = self._compiled(attributes.take(0).appended(condition), attributes)

        def passes(rows: pa.Table) -> NDArray[np.bool_]:
            found: Any = code(rows).column(0)
            holds: NDArray[np.bool_] = (
                found.fill_null(False) if found.null_count else found
            ).to_numpy()
            return holds

        return passes

    def _compiled(self, expressions: Any, attributes: Any) -> Callable[[pa.Table], pa.Table]:
        """Gives what evaluates expressions over rows; plain columns are only passed on."""
        places = {each.exprId().id(): at for at, each in enumerate(items_of(attributes))}
        picks = [pick_of(each, places) for each in items_of(expressions)]
        if None not in picks:
            return lambda rows: numbered([pick(rows) for pick in picks if pick])
        return Code(self._session, self._code, expressions, attributes)

    def _schema_of(self, attributes: Any) -> pa.Schema:
        return arrow_schema(struct_of(attributes))

    def _schema_of_types(self, expressions: Any) -> list[pa.DataType]:
        return list(arrow_schema(struct_of(expressions)).types)


def _once(given: Given, which: Callable[[Given], Any], find: Callable[[], Any]) -> Any:
    """Gives what equal parts have found over the same tables, or finds it."""
    key = which(given)
    if key is None:
        return find()
    if key not in given.known:
        given.known[key] = find()
    return given.known[key]


def _those(*parts: Any) -> Any:
    """Names rows by how they come about; None where that of a part is not known."""
    return None if None in parts else parts


def _inside(expression: Any) -> Any:
    """Gives what an alias stands for, anything else as it is."""
    return expression.child() if expression.nodeName() == "Alias" else expression
