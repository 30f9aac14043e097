"""Checks of a query's sink, and the choice of its directory."""

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path as File

from headgate.errors import QueryRefused
from headgate.extensions import sink_entry
from headgate.model.network.network import Path
from headgate.model.query import Deliver, Query


def versioned(query: Query, version: int) -> Query:
    """Return the query with the directory of a version: `hot`, `hot.v2`, ... ."""
    if version < 2 or not query.sink.has_files:
        return query
    return replace(query, sink=replace(query.sink, path=f"{query.sink.path}.v{version}"))


def placed(query: Query, state: File, paths: Iterable[Path], deliver: Deliver | None) -> Query:
    """Return the query with the directory of its sink, if the sink writes files.

    Args:
        paths: those of the other queries.

    Raises:
        QueryRefused: another query has the directory, no directory can have its name, or a
            callback is missing or not wanted.
    """
    entry = sink_entry(query.sink.format)
    if (deliver is None) == (entry is not None and entry.takes_function):
        raise QueryRefused(
            query=query.name, clause=f"sink format {query.sink.format}",
            reason="has no function" if deliver is None else "takes no function",
            fix="give one, as in  add_query(query, deliver=function)" if deliver is None else
            "leave `deliver` out, or write  Sink(format='callback')",
        )  # fmt: skip
    if not query.sink.has_files:
        return query
    folder = str(File(query.sink.path or state / "results" / query.name).absolute())
    try:
        os.stat(folder)
    except FileNotFoundError:
        pass  # it is created when the query starts
    except (OSError, ValueError) as error:
        raise QueryRefused(
            query=query.name, clause="sink path", fix="choose another directory",
            reason=f"cannot be used: {getattr(error, 'strerror', None) or error}",
        ) from error  # fmt: skip
    for other in paths:
        if other.query.sink.path == folder and other.query.name != query.name:
            raise QueryRefused(
                query=query.name, clause="sink", reason=f"is also that of '{other.query.name}'",
                fix="give each query a directory of its own: their files have the same names",
            )  # fmt: skip
    return replace(query, sink=replace(query.sink, path=folder))
