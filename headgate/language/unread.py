"""Paths of queries that Spark has not read: for what is said of a file, and for simulations."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from sqlglot.tokenizer_core import TokenType

from headgate.errors import QueryRefused, UnknownName
from headgate.language.durations import microseconds
from headgate.language.parse import path_of, whole
from headgate.language.tokens import tokens_of
from headgate.language.window_clause import clauses_in, marked
from headgate.model.network import Path
from headgate.model.query import Query
from headgate.model.stream import DERIVED, Stream
from headgate.model.window import timeline_of

_CALL = re.compile(r"\b(window|session_window)\s*\(([^()]*)\)", re.IGNORECASE)
_DURATION = re.compile(r"INTERVAL\s+[^,]*|'[^']*'", re.IGNORECASE)


def unread_path(
    query: Query, streams: Mapping[str, Sequence[str]]
) -> tuple[Path, tuple[Stream, ...]]:
    """Gives the path of a query and, where it has windows, is a union or a join, its timeline.

    Args:
        streams: column names by stream, as far as they are known.

    Raises:
        QueryRefused: it cannot be read.
        UnknownName: there is no such stream.
    """
    calls = _CALL.findall(query.sql)
    has_windows = calls or any(True for _ in clauses_in(query.sql))
    if not has_windows and not _is_union(query.sql):
        try:
            return path_of(query, streams), ()
        except QueryRefused:
            read = _joined(query, streams)
            if not read:
                raise
            if len(read) == 1:
                return whole(query, read[0]), ()  # joined with tables
    else:
        read = _read(query, streams)
    windows = [clause.window for clause in marked(query)[1]]
    slides = [
        (each.slide or (each.size if len(windows) == 1 else None)) if each.axis == "time" else None
        for each in windows
    ]
    for name, arguments in calls:
        durations = _DURATION.findall(arguments)
        if name.lower() == "window" and durations:
            slides.append(microseconds(durations[-1]))
    if query.deadline_s is None and slides and slides[0]:
        query = replace(query, deadline_s=slides[0] / 1e6)
    read = tuple(dict.fromkeys(read))
    timeline = Stream(name=timeline_of(read), format=DERIVED, of=read)
    return whole(query, timeline.name), (timeline,)


def _joined(query: Query, streams: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return the streams that a query without windows joins, each as often as it is named."""
    tokens = tokens_of(query.sql)
    if any(token.token_type == TokenType.JOIN for token in tokens):
        _read(query, streams)  # or it says which stream there is not
    known = {name.lower(): name for name in streams}
    behind = (TokenType.FROM, TokenType.JOIN, TokenType.COMMA)
    names = (name.text.lower() for before, name in pairwise(tokens) if before.token_type in behind)
    return tuple(known[name] for name in names if name in known)


def _read(query: Query, streams: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Gives the streams that a query names behind FROM or JOIN or with a window, each once."""
    tokens = tokens_of(query.sql)
    behind = [
        name.text
        for before, name in pairwise(tokens)
        if before.token_type in (TokenType.FROM, TokenType.JOIN)
    ]
    known, where = {name.lower(): name for name in streams}, f"query '{query.name}'"
    named = [clause.stream for clause in marked(query)[1]]
    found = [known[name.lower()] for name in (*behind, *named) if name.lower() in known]
    unknown = [name for name in named if name.lower() not in known] or (behind if not found else [])
    if unknown:
        raise UnknownName(kind="stream", name=unknown[0], known=list(streams), where=where)
    if not found:
        raise QueryRefused(
            query=query.name, clause="FROM", reason="names no stream", fix="read a stream"
        )
    return tuple(dict.fromkeys(found))


def _is_union(sql: str) -> bool:
    """Return True if a text is a union of SELECTs."""
    depth = 0
    for token in tokens_of(sql):
        depth -= token.token_type in (TokenType.R_PAREN, TokenType.R_BRACKET)
        if not depth and token.token_type == TokenType.UNION:
            return True
        depth += token.token_type in (TokenType.L_PAREN, TokenType.L_BRACKET)
    return False
