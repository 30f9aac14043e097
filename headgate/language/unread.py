"""Paths of queries that Spark has not read: for what is said of a file, and for simulations."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from sqlglot.tokenizer_core import TokenType

from headgate.errors import QueryRefused, UnknownName
from headgate.language.parse import path_of, whole
from headgate.language.stateful import is_union
from headgate.language.tokens import tokens_of
from headgate.language.windows import called_window, has_windows, named_streams
from headgate.model.network import Path
from headgate.model.query import Query
from headgate.model.stream import DERIVED, Stream
from headgate.model.window import timeline_of


def unread_path(
    query: Query, streams: Mapping[str, Sequence[str]]
) -> tuple[Path, tuple[Stream, ...]]:
    """Gives the path of a query and, where it has windows or is a union, its timeline.

    Args:
        streams: column names by stream, as far as they are known.

    Raises:
        QueryRefused: it cannot be read.
        UnknownName: there is no such stream.
    """
    if not has_windows(query.sql) and not is_union(query.sql):
        return _stateless(query, streams), ()
    read = _read(query, streams)
    windows = [each.window for each in named_streams(query)]
    if (called := called_window(query)) is not None:
        windows.append(called[1])
    if query.deadline_s is None and windows and windows[0].axis == "time":
        first = windows[0]
        slide = first.slide or (first.size if len(windows) == 1 else None)
        query = replace(query, deadline_s=slide / 1e6 if slide else None)
    timeline = Stream(name=timeline_of(read), format=DERIVED, of=read)
    return whole(query, timeline.name), (timeline,)


def _stateless(query: Query, streams: Mapping[str, Sequence[str]]) -> Path:
    try:
        return path_of(query, streams)
    except QueryRefused:
        joined = any(token.token_type == TokenType.JOIN for token in tokens_of(query.sql))
        read = _read(query, streams) if joined else ()
        if len(read) != 1:
            raise
        return whole(query, read[0])  # joined with tables


def _read(query: Query, streams: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Gives the streams that a query names behind FROM or JOIN or with a window, each once."""
    tokens = tokens_of(query.sql)
    behind = [
        name.text
        for before, name in pairwise(tokens)
        if before.token_type in (TokenType.FROM, TokenType.JOIN)
    ]
    known, where = {name.lower(): name for name in streams}, f"query '{query.name}'"
    named = [each.stream for each in named_streams(query)]
    found = [known[name.lower()] for name in (*behind, *named) if name.lower() in known]
    unknown = [name for name in named if name.lower() not in known] or (behind if not found else [])
    if unknown:
        raise UnknownName(kind="stream", name=unknown[0], known=list(streams), where=where)
    if not found:
        raise QueryRefused(
            query=query.name, clause="FROM", reason="names no stream", fix="read a stream"
        )
    return tuple(dict.fromkeys(found))
