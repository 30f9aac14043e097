"""A query's sink on its way in: given its directory, or refused."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path as File

from headgate.errors import QueryRefused
from headgate.model.network import Path
from headgate.model.query import ROW_KEY, Deliver, Query


def placed(query: Query, state: File, known: Iterable[Path], deliver: Deliver | None) -> Query:
    """Gives the query with its sink's directory, where the sink is files.

    Raises:
        QueryRefused: another query has the directory, or a callback is missing or one too many.
    """
    if (deliver is None) == (query.sink.format == "callback"):
        raise QueryRefused(
            query=query.name, clause=f"sink format {query.sink.format}",
            reason="has no function" if deliver is None else "takes no function",
            fix="give one, as in  add_query(query, deliver=function)" if deliver is None else
            "leave `deliver` out, or write  Sink(format='callback')",
        )  # fmt: skip
    if not query.sink.has_files:
        return query
    folder = str(File(query.sink.path or state / "results" / query.name).absolute())
    for other in known:
        if other.query.sink.path == folder and other.query.name != query.name:
            raise QueryRefused(
                query=query.name, clause="sink", reason=f"is also that of '{other.query.name}'",
                fix="give each query a directory of its own: their files have the same names",
            )  # fmt: skip
    return replace(query, sink=replace(query.sink, path=folder))


def refuse_keys(query: Query, columns: Iterable[str]) -> None:
    """Refuses rows of a database that are known by what the query does not put out."""
    if query.sink.format != "jdbc":
        return
    known = {name.lower() for name in columns}
    for key in query.sink.keys:
        if key != ROW_KEY and key.lower() not in known:
            raise QueryRefused(
                query=query.name, clause=f"sink options.key '{key}'",
                reason=f"is no column of it: it puts out {', '.join(columns)}",
                fix=f"select the column, or name others, or '{ROW_KEY}' for a row of its own for"
                " every result",
            )  # fmt: skip
