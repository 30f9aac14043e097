"""Paths of queries that Spark has not read, for checking a file and for simulations."""

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
from headgate.model.network.network import Path
from headgate.model.query import Query
from headgate.model.stream import DERIVED, Stream
from headgate.model.window import timeline_of

_CALL = re.compile(r"\b(window|session_window)\s*\(([^()]*)\)", re.IGNORECASE)
_DURATION = re.compile(r"INTERVAL\s+[^,]*|'[^']*'", re.IGNORECASE)


def path_without_spark(
    query: Query, streams: Mapping[str, Sequence[str]]
) -> tuple[Path, tuple[Stream, ...]]:
    """Return the path of a query and, if it has windows or is a union or a join, its timeline.

    Args:
        streams: column names by stream, if known.

    Raises:
        QueryRefused: the text cannot be read.
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
        (window.slide or (window.size if len(windows) == 1 else None)) if window.by_time else None
        for window in windows
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
        _read(query, streams)  # raises UnknownName if a stream does not exist
    spellings = {name.lower(): name for name in streams}
    openers = (TokenType.FROM, TokenType.JOIN, TokenType.COMMA)
    names = (name.text.lower() for before, name in pairwise(tokens) if before.token_type in openers)
    return tuple(spellings[name] for name in names if name in spellings)


def _read(query: Query, streams: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return the streams that a query names after FROM or JOIN or with a window, each once."""
    tokens = tokens_of(query.sql)
    tables = [
        name.text
        for before, name in pairwise(tokens)
        if before.token_type in (TokenType.FROM, TokenType.JOIN)
    ]
    spellings, where = {name.lower(): name for name in streams}, f"query '{query.name}'"
    named = [clause.stream for clause in marked(query)[1]]
    names = [spellings[name.lower()] for name in (*tables, *named) if name.lower() in spellings]
    unknown = [name for name in named if name.lower() not in spellings]
    unknown = unknown or (tables if not names else [])
    if unknown:
        raise UnknownName(kind="stream", name=unknown[0], known=list(streams), where=where)
    if not names:
        raise QueryRefused(
            query=query.name, clause="FROM", reason="names no stream", fix="read a stream"
        )
    return tuple(dict.fromkeys(names))


def _is_union(sql: str) -> bool:
    """Return True if a text is a union of SELECTs."""
    depth = 0
    for token in tokens_of(sql):
        depth -= token.token_type in (TokenType.R_PAREN, TokenType.R_BRACKET)
        if not depth and token.token_type == TokenType.UNION:
            return True
        depth += token.token_type in (TokenType.L_PAREN, TokenType.L_BRACKET)
    return False
