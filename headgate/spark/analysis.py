"""Spark's reading of a query: what it is made of, or why it is refused."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from headgate.errors import QueryRefused
from headgate.model.network import Path
from headgate.model.query import Query
from headgate.model.window import (
    HIDDEN,
    WRITTEN,
    Stateful,
    arrival_column,
    place_columns,
    time_column,
)
from headgate.spark.group import quoted
from headgate.spark.refusals import SPARK_ERRORS, reason_of


@dataclass(frozen=True)
class Analysis:
    """Classes of nodes that read streams and of everything in the plan; names of what comes out.

    `shape` is the plan without what two readings of the same query may differ in. `joins` are those
    of streams. `joins_tables` tells that tuples are joined with stored rows, each whatever others
    come; `keeps_stored`, that stored rows come out because there is no tuple for them.
    """

    nodes: tuple[str, ...]
    expressions: frozenset[str]
    streams: tuple[str, ...]
    columns: tuple[str, ...]
    random: str | None
    shape: str
    joins: tuple[str, ...] = ()
    joins_tables: bool = False
    keeps_stored: bool = False


class Analyst:
    """Analyses queries against the streams' schemas, in a session of its own."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._schemas: dict[str, StructType] = {}
        self._views: frozenset[str] = frozenset()

    @property
    def _known(self) -> frozenset[str]:
        return frozenset(map(str.lower, self._schemas)) | self._views

    def add_stream(self, name: str, schema: StructType) -> None:
        """Makes a stream known under its name, as a relation without rows."""
        self._session.createDataFrame([], schema).createOrReplaceTempView(name)
        self._schemas[name] = schema

    def drop_stream(self, name: str) -> None:
        """Makes a stream unknown."""
        self._session.catalog.dropTempView(name)
        del self._schemas[name]

    def analyse(self, query: Query) -> Analysis:
        """Gives Spark's reading of a text; nothing is executed.

        Raises:
            QueryRefused: Spark cannot parse or resolve it, or it is not a query.
        """
        return self._read(self.frame(query))

    def frame(self, query: Query) -> DataFrame:
        """Gives a text as a frame; nothing is executed.

        Raises:
            QueryRefused: Spark cannot parse or resolve it, or it is not a query.
        """
        try:
            parsed = self._session._jsparkSession.sessionState().sqlParser().parsePlan(query.sql)
            # A command would be executed by the mere call of sql(); its class tells beforehand.
            for node in _nodes(json.loads(parsed.toJSON())):
                if node not in _OF_QUERIES:
                    raise _not_a_query(query, node)
            return _applied(query, self._session.sql(query.sql))
        except ParseException as error:
            raise _unparsed(query, error) from error
        except AnalysisException as error:
            raise _unresolved(query, error) from error
        except SPARK_ERRORS as error:
            raise QueryRefused(
                query=query.name, clause="the text", reason=f"is refused: {reason_of(error)}",
                fix="correct the text",
            ) from error  # fmt: skip

    def over_windows(self, query: Query, how: Stateful) -> Analysis:
        """Gives Spark's reading of the text by which a query with windows is computed.

        Raises:
            QueryRefused: Spark cannot resolve it.
        """
        with self._over_windows(query, how):
            return self.analyse(replace(query, sql=how.text))

    def schema_of(self, path: Path) -> StructType:
        """Return the columns that a query puts out, with their types; each may be NULL."""
        query, how = path.query, path.stateful
        if how is None:
            schema = self.frame(query).schema
        else:
            with self._over_windows(query, how):
                schema = self.frame(replace(query, sql=how.text)).schema
        shown = [field for field in schema.fields if not field.name.startswith(HIDDEN)]
        text = StructType(shown).json()
        for key in ("nullable", "containsNull", "valueContainsNull"):
            text = text.replace(f'"{key}":false', f'"{key}":true')
        return StructType.fromJson(json.loads(text))

    @contextmanager
    def _over_windows(self, query: Query, how: Stateful) -> Iterator[None]:
        """Make the views known by which a query with windows is computed."""
        kind = "BIGINT" if how.inputs[0].window.axis == "rows" else "TIMESTAMP"
        self._views = frozenset(each.view.lower() for each in how.inputs)
        try:
            for number, each in enumerate(how.inputs):
                frame = self._session.createDataFrame([], self._schemas[each.stream])
                if how.mode == "union":
                    frame = frame.selectExpr("*", f"0L AS {time_column(0)}")
                elif how.mode == "pairs":
                    places = place_columns(number, how.windows)
                    frame = frame.selectExpr(
                        "*",
                        f"0D AS {arrival_column(number)}",
                        *(f"0L AS {column}" for column in places),
                    )
                elif how.shows_window:
                    _refuse_own_window(query, each.stream, self._schemas[each.stream])
                    frame = frame.selectExpr("*", _window_of(kind))
                frame.createOrReplaceTempView(each.view)
            yield
        finally:
            self._views = frozenset()
            for each in how.inputs:
                self._session.catalog.dropTempView(each.view)
                if each.view == each.stream:
                    self.add_stream(each.stream, self._schemas[each.stream])

    def same(self, path: Path, shape: str) -> bool:
        """Tells whether a path, put together again, is what Spark has read in the query's text."""
        outputs = ", ".join(
            output
            if output.strip("`").replace("``", "`") == name
            else f"{output} AS {quoted(name)}"
            for output, name in zip(path.outputs, path.columns, strict=True)
        )
        where = f" WHERE {path.predicate}" if path.predicate else ""
        try:
            again = self._session.sql(f"SELECT {outputs} FROM `{path.stream}`{where}")
        except SPARK_ERRORS:
            return False
        return _shape(_tree(again)) == shape

    def never_fail(self, stream: str, conditions: Sequence[str]) -> list[bool]:
        """Tells of conditions over a stream whether they have a value for every row."""
        columns = ", ".join(conditions)
        plan = self._session.sql(f"SELECT {columns} FROM `{stream}`")._jdf.queryExecution()
        found = plan.analyzed().projectList()
        return [_never_fails(found.apply(number)) for number in range(found.size())]

    def _read(self, frame: DataFrame) -> Analysis:
        plan = frame._jdf.queryExecution().analyzed()
        tree = _tree(frame)
        classes = _classes(tree)
        luck = [kind for kind in classes if kind in _RANDOM]
        streams = [name for name in _views(tree) if name.lower() in self._known]
        random = None if plan.deterministic() and not luck else (luck or ["an expression"])[0]
        reads, joins = _reading(tree, self._known)
        keeps_stored = any(
            (left and not right and how not in _KEEPS_LEFT)
            or (right and not left and how not in _KEEPS_RIGHT)
            for how, left, right in joins
        )
        return Analysis(
            nodes=tuple(
                node
                for node, has_stream in zip(_nodes(tree), reads, strict=True)
                if has_stream or node in _NOT_FIXED or not streams
            ),
            expressions=frozenset(classes),
            streams=tuple(streams),
            columns=tuple(frame.columns),
            random=random,
            shape=_shape(tree),
            joins=tuple(how for how, left, right in joins if left and right),
            joins_tables=len(streams) == 1 and bool(joins) and not keeps_stored,
            keeps_stored=keeps_stored,
        )


_NEVER_FAIL = frozenset(
    {
        *("AttributeReference", "Literal", "Alias", "And", "Or", "Not", "IsNull", "IsNotNull"),
        *("EqualTo", "EqualNullSafe", "LessThan", "LessThanOrEqual", "GreaterThan", "In", "InSet"),
        *("GreaterThanOrEqual", "Coalesce", "If", "CaseWhen", "IsNaN", "Lower", "Upper", "Length"),
        *("StartsWith", "EndsWith", "Contains", "StringTrim", "StringTrimLeft", "StringTrimRight"),
        *("Substring", "Concat", "Reverse", "Year", "Month", "DayOfMonth", "Md5", "Sha2", "Crc32"),
        *("Levenshtein", "SoundEx", "StringInstr", "StringTranslate", "InitCap", "Murmur3Hash"),
        *("Exp", "Sqrt", "Cbrt", "Log", "Log2", "Log10", "Log1p", "Pow", "Sin", "Cos", "Tan"),
        *("Signum", "XxHash64", "Between", "With", "CommonExpressionDef", "CommonExpressionRef"),
    }
)
"""Expressions that have a value, be it NULL, whatever their arguments are."""

_OF_LITERALS = frozenset({"Like", "RLike"})
"""Those whose pattern may be wrong; a constant one has been seen to be right, or fails always."""

_OF_DOUBLES = frozenset({"Add", "Subtract", "Multiply", "UnaryMinus", "Abs"})
"""Those that overflow, unless they are computed with doubles."""

_WIDER = ("tinyint", "smallint", "int", "bigint", "float", "double")


def _never_fails(expression: Any) -> bool:
    """Tells whether Spark, as strict as it is by default, has a value for every row."""
    kind = expression.nodeName()
    children = [expression.children().apply(n) for n in range(expression.children().size())]
    if kind == "Cast":
        narrow, wide = (each.dataType().catalogString() for each in (children[0], expression))
        numbers = {narrow, wide} <= set(_WIDER) and _WIDER.index(narrow) <= _WIDER.index(wide)
        known = numbers or narrow == wide
    elif kind in _OF_LITERALS:
        known = bool(children[1].nodeName() == "Literal")
    elif kind in _OF_DOUBLES:
        known = expression.dataType().catalogString() in ("float", "double")
    else:
        known = kind in _NEVER_FAIL
    return known and all(map(_never_fails, children))


def _applied(query: Query, frame: DataFrame) -> DataFrame:
    """Gives what a query's function makes of what its text gives."""
    if query.apply is None:
        return frame
    fix = "give a function that takes a DataFrame and gives one"
    try:
        made = query.apply(frame)
    except Exception as error:
        reason = f"fails: {reason_of(error)}"
        raise QueryRefused(query=query.name, clause="apply", reason=reason, fix=fix) from error
    if not isinstance(made, DataFrame):
        reason = f"gives {type(made).__name__}, no DataFrame"
        raise QueryRefused(query=query.name, clause="apply", reason=reason, fix=fix)
    return made


def _refuse_own_window(query: Query, stream: str, schema: StructType) -> None:
    if "window" in map(str.lower, schema.names):
        raise QueryRefused(
            query=query.name, clause="window",
            reason=f"is a column of stream '{stream}', and the window's start and end",
            fix="give the column another name where the stream comes from",
        )  # fmt: skip


def _window_of(kind: str) -> str:
    return f"CAST(NULL AS STRUCT<start: {kind}, end: {kind}>) AS window"


_OF_QUERIES = frozenset(
    {
        *("Project", "Filter", "Aggregate", "Sort", "GlobalLimit", "LocalLimit", "LimitAll"),
        *("Offset", "Tail"),
        *("Distinct", "Union", "Except", "Intersect", "Join", "LateralJoin", "Sample", "Pivot"),
        *("Unpivot", "Generate", "Repartition", "RepartitionByExpression", "SubqueryAlias"),
        *("UnresolvedWith", "UnresolvedHaving", "UnresolvedHint", "UnresolvedRelation"),
        *("UnresolvedInlineTable", "UnresolvedTableValuedFunction", "WithWindowDefinition"),
        *("OneRowRelation", "LocalRelation", "PipeOperator", "UnresolvedSubqueryColumnAliases"),
    }
)
"""Nodes that a SELECT is parsed into. What is not here is a command, or too new to be trusted."""

_RANDOM = frozenset(
    {
        *("Rand", "Randn", "RandStr", "Uniform", "Uuid", "Shuffle", "AesEncrypt"),
        *("MonotonicallyIncreasingID", "SparkPartitionID"),
        *("InputFileName", "InputFileBlockStart", "InputFileBlockLength"),
    }
)


def _nodes(tree: list[dict[str, Any]]) -> list[str]:
    return [node["class"].rsplit(".", 1)[-1] for node in tree]


def _classes(tree: Any) -> list[str]:
    return list(_walk(tree))


def _walk(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if "class" in value:
            yield value["class"].rsplit(".", 1)[-1]
        for part in value.values():
            yield from _walk(part)
    elif isinstance(value, list):
        for part in value:
            yield from _walk(part)


def _tree(frame: DataFrame) -> list[dict[str, Any]]:
    tree: list[dict[str, Any]] = json.loads(frame._jdf.queryExecution().analyzed().toJSON())
    return tree


def _shape(tree: list[dict[str, Any]]) -> str:
    """Gives a plan without what two readings may differ in: numbers, aliases of tables."""
    numbers: dict[int, int] = {}

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            if "jvmId" in value:
                return numbers.setdefault(value["id"], len(numbers))
            return {key: plain(part) for key, part in value.items() if key != "qualifier"}
        return [plain(part) for part in value] if isinstance(value, list) else value

    nodes = [node for node in tree if not node["class"].endswith(".SubqueryAlias")]
    return json.dumps(plain(nodes), sort_keys=True)


def _views(tree: list[dict[str, Any]]) -> Iterator[str]:
    """Gives the views a plan reads: each stands right below the alias of its name."""
    for above, node in pairwise(tree):
        if node["class"].endswith(".View") and above["class"].endswith(".SubqueryAlias"):
            yield str(above["identifier"]["name"])


_KEEPS_LEFT = ("Inner", "Cross", "LeftOuter", "LeftSemi", "LeftAnti")
_KEEPS_RIGHT = ("Inner", "Cross", "RightOuter")


_NOT_FIXED = frozenset({"Sample", "GlobalLimit", "LocalLimit"})
"""Nodes that matter over stored rows, too: which rows they leave may be different each time."""


def _reading(
    tree: list[dict[str, Any]], streams: frozenset[str]
) -> tuple[list[bool], list[tuple[str, bool, bool]]]:
    """Tells of every node whether it or one below reads a stream, and how relations are joined:
    Inner, LeftOuter and so on, and whether left and right have a stream.
    """
    reads = [False] * len(tree)
    joins: list[tuple[str, bool, bool]] = []
    of_ctes: dict[Any, bool] = {}

    def walk(place: int) -> int:
        """Walks over a node and all below it, and gives the place behind."""
        node, above, after = tree[place], tree[max(0, place - 1)], place + 1
        kind = node["class"].rsplit(".", 1)[-1]
        if kind == "View" and above["class"].endswith(".SubqueryAlias"):
            reads[place] = str(above["identifier"]["name"]).lower() in streams
        elif kind == "CTERelationRef":
            reads[place] = of_ctes.get(node["cteId"], False)
        sides: list[bool] = []
        for _ in range(int(node["num-children"])):
            child, after = after, walk(after)
            sides.append(reads[child])
        reads[place] |= any(sides)
        if kind == "CTERelationDef":
            of_ctes[node["id"]] = reads[place]
        if kind == "Join":
            how = str(node["joinType"]["object"]).rsplit(".", 1)[-1].rstrip("$")
            joins.append((how, sides[0], sides[1]))
        return after

    walk(0)
    return reads, joins


def _not_a_query(query: Query, kind: str) -> QueryRefused:
    return QueryRefused(
        query=query.name,
        clause=kind,
        reason="is not a SELECT over a stream, so it cannot run continuously",
        fix="write one SELECT ... FROM a stream; change tables outside Headgate",
    )


def _unparsed(query: Query, error: ParseException) -> QueryRefused:
    message = str(error).strip()
    line = column = None
    if "(line " in message:
        place = message.split("(line ", 1)[1].split(")", 1)[0]
        first, _, second = place.partition(", pos ")
        line, column = int(first), int(second) + 1
    reason = reason_of(error)
    fix = "correct the text"
    if ";" in query.sql.rstrip().rstrip(";"):
        fix = "write one statement; register the others as queries of their own"
    elif "near '['" in reason:
        fix = f"write a window behind a stream as {WRITTEN}"
    return QueryRefused(
        query=query.name, clause="the text", reason=f"cannot be parsed: {reason}", fix=fix,
        line=line, column=column,
    )  # fmt: skip


def _unresolved(query: Query, error: AnalysisException) -> QueryRefused:
    parameters = error.getMessageParameters() or {}
    condition = error.getCondition() or ""
    clause = next(iter(parameters.values()), "the text")
    fix = "correct the text"
    if proposal := parameters.get("proposal"):
        fix = f"use one of {proposal}"
    reason = f"is refused by Spark: {reason_of(error)}"
    if condition.startswith("UNRESOLVED_COLUMN"):
        clause, reason = f"column {parameters.get('objectName')}", "does not exist in the stream"
    elif condition in ("UNRESOLVED_ROUTINE", "UNRESOLVED_FUNCTION"):
        clause, reason = f"function {parameters.get('routineName')}", "does not exist"
        fix = "use a function of Spark SQL, or register yours in the session that you pass in"
    elif condition == "TABLE_OR_VIEW_NOT_FOUND":
        clause, reason = f"stream {parameters.get('relationName')}", "does not exist"
        fix = "read a stream of the pipeline"
    return QueryRefused(
        query=query.name, clause=clause, reason=reason, fix=fix, line=_line(query.sql, error)
    )


def _line(sql: str, error: PySparkException) -> int | None:
    contexts = error.getQueryContext()
    if not contexts:
        return None
    return sql.count("\n", 0, max(0, contexts[0].startIndex())) + 1
