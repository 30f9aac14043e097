"""Makes of a join of tuples as they come what can be computed."""

from collections.abc import Sequence
from typing import cast

from sqlglot.tokenizer_core import Token, TokenType

from headgate.errors import QueryRefused
from headgate.language.carried import carried
from headgate.language.clauses import depths_of, insert, places_of, refuse_all_columns
from headgate.language.refuse import WHOLE
from headgate.language.tokens import tokens_of
from headgate.language.using import with_on
from headgate.language.windows import Named
from headgate.model.query import Query
from headgate.model.window import (
    ARRIVED,
    HIDDEN,
    Input,
    Join,
    Stateful,
    arrival_column,
    has_column,
    place_columns,
    seen_column,
    time_column,
)

_BEHIND_ON = frozenset({"JOIN", "LEFT", "RIGHT", "FULL", "INNER", "CROSS", "SEMI", "ANTI",
                        "NATURAL", "LATERAL", "WHERE", ","})  # fmt: skip
"""Words that end the condition of a join."""


def pairs_of(query: Query, named: Sequence[Named], joins: Sequence[str]) -> Stateful:
    """Gives a join of tuples as they come: those that are in each other's windows.

    Args:
        joins: how the streams are joined, as Spark names it.

    Raises:
        QueryRefused: it has tuples without partners of more than two streams, or no condition.
    """
    outer = [each for each in joins if each not in ("Inner", "Cross")]
    if outer and len(named) > 2:
        raise QueryRefused(
            query=query.name, clause=f"{outer[0]} join", reason="is possible of two streams only",
            fix=WHOLE,
        )  # fmt: skip
    if outer and named[0].window.axis == "rows":
        raise QueryRefused(
            query=query.name, clause=f"{outer[0]} join", reason="is not possible of ROWS windows",
            fix="use RANGE: time tells when no partner can come any more",
        )  # fmt: skip
    join = cast(Join, outer[0] if outer else "Inner")
    text = over_views(query.sql, named)
    if join != "Inner":
        text = with_on(text, [each.alias for each in named], join)
    tokens = [token for token in tokens_of(text) if token.token_type != TokenType.SEMICOLON]
    refuse_all_columns(query, tokens)
    places = places_of(tokens)
    times = [time_column(number) for number in range(len(named))]
    by_number = named[0].window.axis == "rows"
    conditions = " AND ".join(
        f"{time} >= {seen_column(other, number) if by_number else times[other]}"
        f" - {each.window.size}L"
        for number, (time, each) in enumerate(zip(times, named, strict=True))
        for other in range(len(named))
        if other != number
    )
    seen = range(1 if join in ("LeftSemi", "LeftAnti") else len(named))
    arrivals = [arrival_column(number) for number in seen]
    arrived = f"greatest({', '.join(arrivals)})" if len(arrivals) > 1 else arrivals[0]
    hidden = [f"{arrived} AS {ARRIVED}", *(f"{times[n]} AS {has_column(n)}" for n in seen)]
    inserted = {places["FROM"]: f", {', '.join(hidden)} "}
    inserted |= carried(tokens, _hidden(tokens, named))
    where, end = places.get("WHERE"), len(tokens)
    if join != "Inner":
        on, behind = _condition(query, tokens)
        inserted[on + 1] = "("
        inserted[behind] = f") AND {conditions} "
    elif where is None:
        inserted[end] = f" WHERE {conditions}"
    else:
        inserted[where + 1] = "("
        inserted[end] = f") AND {conditions}"
    text = insert(text, tokens, inserted)
    return Stateful(mode="pairs", text=text, inputs=inputs_of(named), join=join)


def _hidden(tokens: Sequence[Token], named: Sequence[Named]) -> dict[int, tuple[str, ...]]:
    """Gives the columns of views that no user sees, by where the view stands."""
    windows = [each.window for each in named]
    columns = {
        f"{HIDDEN}v{n}": (*place_columns(n, windows), arrival_column(n)) for n in range(len(named))
    }
    return {n: columns[each.text] for n, each in enumerate(tokens) if each.text in columns}


def _condition(query: Query, tokens: Sequence[Token]) -> tuple[int, int]:
    """Gives the place of ON between two streams, and of what follows its condition."""
    depths = depths_of(tokens)
    first, second = (
        next(place for place, token in enumerate(tokens) if token.text == f"{HIDDEN}v{number}")
        for number in range(2)
    )
    # Where they are joined, as few brackets are around as anywhere between them.
    joined = min(depth for _, depth in depths[first : second + 1])
    words = {n: _word(tokens, n) for n in range(second, len(tokens)) if depths[n][1] <= joined}
    on = next((n for n, word in words.items() if word == "ON" or word in _BEHIND_ON), second)
    if words.get(on) != "ON":
        raise QueryRefused(
            query=query.name, clause="JOIN", reason="has no ON",
            fix="write ON a.k = b.k behind it, without USING or NATURAL",
        )  # fmt: skip
    ends = [n for n, word in words.items() if word in _BEHIND_ON or depths[n][1] < joined]
    return on, next((n for n in ends if n > on), len(tokens))


def _word(tokens: Sequence[Token], place: int) -> str:
    """Gives a word of SQL; none for names, strings and the functions left() and right()."""
    token, after = tokens[place], tokens[place + 1 : place + 2]
    word = token.text.upper()
    calls = word in ("LEFT", "RIGHT") and after and after[0].token_type == TokenType.L_PAREN
    quoted = token.token_type in (TokenType.STRING, TokenType.IDENTIFIER)
    return "" if calls or quoted else word


def over_views(sql: str, named: Sequence[Named]) -> str:
    """Gives a text with a view for every stream that it names."""
    text, at = "", 0
    for number, each in enumerate(named):
        text, at = f"{text}{sql[at : each.start]}{HIDDEN}v{number} AS `{each.alias}`", each.end
    return text + sql[at:]


def inputs_of(named: Sequence[Named]) -> tuple[Input, ...]:
    """Gives the streams with their views."""
    return tuple(
        Input(stream=each.stream, view=f"{HIDDEN}v{number}", window=each.window)
        for number, each in enumerate(named)
    )
