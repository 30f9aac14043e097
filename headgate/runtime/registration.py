"""A query on its way in: analysed by Spark, refused or taken apart."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from headgate.errors import HeadgateError, QueryRefused
from headgate.language.cut import cut
from headgate.language.parse import path_of, whole
from headgate.language.refuse import refuse_luck, refuse_stateful
from headgate.model.network import Path
from headgate.model.query import Query
from headgate.model.stream import Stream
from headgate.runtime.placement import refuse_keys

if TYPE_CHECKING:
    from headgate.spark.analysis import Analyst


def segments_of(
    query: Query,
    analyst: "Analyst",
    columns: Mapping[str, Sequence[str]],
    cuts: Callable[[Query], bool] = lambda query: False,
) -> tuple[tuple[Stream, ...], tuple[Path, ...]]:
    """Gives the paths of a query, one or, where it is to be cut, two with the queue between them.

    Args:
        cuts: tells whether a query that does not say so itself is to be cut, if it can be.

    Raises:
        QueryRefused: as `registered`, or it cannot be cut although it says so.
    """
    path = registered(query, analyst, columns)
    if query.cut is False or (query.cut is None and not cuts(query)):
        return (), (path,)
    try:
        queue, first, rest = cut(path, columns[path.stream])
    except QueryRefused:
        if query.cut:
            raise
        return (), (path,)
    return (queue,), (first, rest)


def registered(query: Query, analyst: "Analyst", columns: Mapping[str, Sequence[str]]) -> Path:
    """Gives the path of a query, taken apart where Spark confirms that it stays the same query.

    Args:
        columns: the columns of every stream.

    Raises:
        QueryRefused: it cannot run continuously; says which clause, why, and what to do.
    """
    analysis = analyst.analyse(query)
    refuse_stateful(query.name, query.sql, analysis.nodes, analysis.expressions)
    if analysis.random is not None:
        refuse_luck(query.name, analysis.random)
    if len(analysis.streams) != 1:
        raise QueryRefused(
            query=query.name, clause="FROM", reason=f"names {len(analysis.streams)} streams",
            fix="read exactly one stream",
        )  # fmt: skip
    _refuse_twin_columns(query, analysis.columns)
    refuse_keys(query, analysis.columns)
    stream = next(name for name in columns if name.lower() == analysis.streams[0].lower())
    try:
        path = replace(path_of(query, columns), columns=analysis.columns)
    except HeadgateError:
        path = whole(query, stream)  # Spark reads what sqlglot does not
    taken_apart = (
        "Generate" not in analysis.nodes  # one row makes several: not a matter of flags
        and len(path.outputs) == len(path.columns)
        and analyst.same(path, analysis.shape)
    )
    return path if taken_apart else replace(whole(query, stream), columns=analysis.columns)


def _refuse_twin_columns(query: Query, columns: Sequence[str]) -> None:
    seen: set[str] = set()
    for column in columns:
        if column.lower() in seen:
            raise QueryRefused(
                query=query.name, clause=f"column `{column}`", reason="comes out twice",
                fix="give one of the two another name with AS",
            )  # fmt: skip
        seen.add(column.lower())
