"""Windows in a text: CQL's clause, `FROM s [RANGE 60 SECONDS SLIDE 10 SECONDS]`, and window()."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import pairwise

from sqlglot.tokenizer_core import Token, TokenType

from headgate.errors import QueryRefused
from headgate.language.tokens import tokens_of
from headgate.model.query import Query
from headgate.model.window import WRITTEN, Window

MICROSECONDS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
_UNITS = (*MICROSECONDS, *(f"{unit}s" for unit in MICROSECONDS))
_CALENDAR = ("month", "months", "quarter", "quarters", "year", "years")
_UNIT = re.compile(r"\d['\"]?\s*([A-Za-z]+)")

LONGEST = 2**60
"""Microseconds that can be added to any time, and more tuples than there are."""

_CLAUSES = (TokenType.L_BRACKET, TokenType.RANGE, TokenType.ROWS)
_NAMES = (TokenType.VAR, TokenType.IDENTIFIER)


@dataclass(frozen=True)
class Named:
    """A stream that a text names with a window, from the name to the end of its alias.

    Args:
        start, end: the place of name, window and alias in the text.
        alias: the name that the rest of the text uses.
    """

    stream: str
    alias: str
    window: Window
    start: int
    end: int


def has_windows(sql: str) -> bool:
    """Tells whether a text has a window of any kind."""
    tokens = tokens_of(sql)
    return any(
        _opens(*pair) or _calls(*pair) or _calls(*pair, "session_window")
        for pair in pairwise(tokens)
    )


def without_windows(sql: str) -> str:
    """Gives a text without its window clauses, as Spark and sqlglot can read it."""
    tokens = tokens_of(sql)
    text, at = "", 0
    for place, (token, after) in enumerate(pairwise(tokens)):
        if _opens(token, after):
            text, at = text + sql[at : token.start], _closing(tokens, place).end + 1
    return text + sql[at:]


def named_streams(query: Query) -> list[Named]:
    """Gives the streams that are named with a window clause, in the order of the text.

    Raises:
        QueryRefused: a clause cannot be read.
    """
    sql, tokens = query.sql, tokens_of(query.sql)
    found: list[Named] = []
    for place, (token, after) in enumerate(pairwise(tokens)):
        if not _opens(token, after):
            continue
        close = tokens.index(_closing(tokens, place))
        clause = sql[token.start : tokens[close].end + 1]
        if tokens[close].token_type != TokenType.R_BRACKET:
            raise _refused(query, clause, token, "is not closed")
        if not place or not _names(tokens[place - 1]):
            raise _refused(query, clause, token, "does not stand behind the name of a stream")
        name, last = tokens[place - 1], tokens[close]
        alias, behind = name.text, tokens[close + 1 : close + 3]
        said = bool(behind) and behind[0].token_type == TokenType.ALIAS
        behind = behind[said:]
        if behind and (_names(behind[0]) if said else behind[0].token_type in _NAMES):
            alias, last = behind[0].text, behind[0]
        window = _clause(query, clause, tokens[place + 1 : close])
        found.append(Named(name.text, alias, window, name.start, last.end + 1))
    return found


def called_window(query: Query) -> tuple[str, Window, str] | None:
    """Gives the column and the window of window(column, ...), and the text with `window` for it.

    Raises:
        QueryRefused: it cannot be read, or there are two that differ.
    """
    sql, tokens = query.sql, tokens_of(query.sql)
    found: tuple[str, Window] | None = None
    text, at = "", 0
    for place, (token, after) in enumerate(pairwise(tokens)):
        if not _calls(token, after):
            continue
        close = _closing(tokens, place + 1)
        call = sql[token.start : close.end + 1]
        arguments = _arguments(sql, tokens[place + 2 : tokens.index(close)])
        window = _call(query, call, token, arguments)
        if found is not None and found != (arguments[0], window):
            raise _refused(query, call, token, "is a second window: a query has one")
        found = arguments[0], window
        text, at = text + sql[at : token.start] + "window", close.end + 1
    return None if found is None else (*found, text + sql[at:])


def called_session(query: Query) -> tuple[str, int, str] | None:
    """Gives the column and the gap of session_window(column, gap), and the call itself.

    Raises:
        QueryRefused: it cannot be read, or there are two that differ.
    """
    sql, tokens = query.sql, tokens_of(query.sql)
    found: tuple[str, int, str] | None = None
    for place, (token, after) in enumerate(pairwise(tokens)):
        if not _calls(token, after, "session_window"):
            continue
        close = _closing(tokens, place + 1)
        call = sql[token.start : close.end + 1]
        arguments = _arguments(sql, tokens[place + 2 : tokens.index(close)])
        gap = microseconds(arguments[1]) if len(arguments) == 2 else None
        if gap is None and _unknown_units(call):
            raise _unreadable(query, call, token, "write session_window(ts, '5 minutes')")
        if gap is None:
            raise _refused(query, call, token, "has no gap that is the same for all tuples",
                           "write a duration, as in session_window(ts, '5 minutes')")  # fmt: skip
        if found is not None and found[:2] != (arguments[0], gap):
            raise _refused(query, call, token, "is a second kind of session: a query has one",
                           "write the same session_window everywhere")  # fmt: skip
        found = arguments[0], gap, call
    return found


def microseconds(text: str) -> int | None:
    """Gives a duration; None where it cannot be read.

    >>> microseconds("1 minute 30 seconds"), microseconds("INTERVAL '0.5' HOURS")
    (90000000, 1800000000)
    """
    words = text.lower().replace("interval", " ").replace("'", " ").replace('"', " ").split()
    total, numbers, units = 0, words[::2], words[1::2]
    if not words or len(words) % 2:
        return None
    for number, unit in zip(numbers, units, strict=True):
        scale = MICROSECONDS.get(unit.removesuffix("s"))
        if scale is None or not re.fullmatch(r"\d+(\.\d+)?", number):
            return None
        total += round(float(number) * scale)
    return total if 0 < total < LONGEST else None


def refuse_other_time(
    query: Query,
    column: str,
    stream: str,
    times: Mapping[str, str | None],
    called: str = "window",
) -> None:
    """Refuses windows over a column that is not the time of its stream."""
    time, name = times[stream], column.rsplit(".", 1)[-1].strip("` ")
    if time is None or name.lower() != time.lower():
        raise QueryRefused(
            query=query.name, clause=f"{called}({column}, ...)",
            reason=f"is over a column that is not the event_time of stream '{stream}'"
            + ("" if time is None else f", which is {time}"),
            fix=f"set event_time: {name} in stream '{stream}', or use its event_time",
        )  # fmt: skip


def _names(token: Token) -> bool:
    """Tells whether a word can be a name: a stream may be called `date`, too."""
    return token.token_type in _NAMES or (
        re.fullmatch(r"[A-Za-z]\w*", token.text) is not None
        and token.token_type not in (TokenType.STRING, TokenType.FROM, TokenType.JOIN)
    )


def _opens(token: Token, after: Token) -> bool:
    return token.token_type == _CLAUSES[0] and after.token_type in _CLAUSES[1:]


def _calls(token: Token, after: Token, name: str = "window") -> bool:
    return token.text.lower() == name and after.token_type == TokenType.L_PAREN


def _closing(tokens: Sequence[Token], opening: int) -> Token:
    """Gives the bracket that closes one, or the last word where none does."""
    pairs = {
        TokenType.L_BRACKET: TokenType.R_BRACKET,
        TokenType.L_PAREN: TokenType.R_PAREN,
    }
    open_, close = tokens[opening].token_type, pairs[tokens[opening].token_type]
    depth = 0
    for token in tokens[opening:]:
        depth += (token.token_type == open_) - (token.token_type == close)
        if not depth:
            return token
    return tokens[-1]


def _arguments(sql: str, tokens: Sequence[Token]) -> list[str]:
    """Gives what stands between the commas of a call."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += token.token_type == TokenType.L_PAREN
        depth -= token.token_type == TokenType.R_PAREN
        if not depth and token.token_type == TokenType.COMMA:
            parts.append([])
        else:
            parts[-1].append(token)
    return [sql[part[0].start : part[-1].end + 1] if part else "" for part in parts]


def _clause(query: Query, clause: str, tokens: Sequence[Token]) -> Window:
    """Reads what stands between the brackets."""
    kind, words = tokens[0].text.upper(), [token.text for token in tokens[1:]]
    at = next((n for n, word in enumerate(words) if word.upper() == "SLIDE"), len(words))
    parts = [" ".join(words[:at]), " ".join(words[at + 1 :])]
    if kind == "ROWS":
        sizes = [int(each) if re.fullmatch(r"\d{1,18}", each) else None for each in parts]
    else:
        sizes = [microseconds(each) for each in parts]
    size, slide = sizes
    if not size or (at < len(words) and not slide):
        raise _unreadable(query, clause, tokens[0], f"write {WRITTEN}")
    return Window(axis="rows" if kind == "ROWS" else "time", size=size, slide=slide)


def _call(query: Query, call: str, token: Token, arguments: Sequence[str]) -> Window:
    """Reads the arguments of window(column, duration, slide, start), as Spark has them."""
    durations = [microseconds(each) for each in arguments[1:3]]
    start = microseconds(arguments[3]) if len(arguments) > 3 else 0
    if not 2 <= len(arguments) <= 4 or None in durations or start is None:
        raise _unreadable(query, call, token, "write window(ts, '60 seconds', '10 seconds')")
    size = durations[0] or 0
    slide = durations[-1] or 0
    return Window(axis="time", size=size, slide=slide, offset=(start + size) % slide)


def _unknown_units(clause: str) -> list[str]:
    """Return the words behind numbers that are not units of time."""
    known = (*_UNITS, *_CALENDAR, "slide")
    return [unit for unit in _UNIT.findall(clause) if unit.lower() not in known]


def _unreadable(query: Query, clause: str, token: Token, fix: str) -> QueryRefused:
    """Return the refusal of a window; for an unknown unit, with the clause as it may be meant."""
    unknown = _unknown_units(clause)
    nearest = {unit: get_close_matches(unit.lower(), _UNITS, n=1, cutoff=0.6) for unit in unknown}
    reason = "cannot be read"
    if unknown:
        reason += f": there is no unit {unknown[0]}"
    elif calendar := [unit for unit in _UNIT.findall(clause) if unit.lower() in _CALENDAR]:
        reason += f": {calendar[0]} has no fixed length"
    if unknown and all(nearest.values()):
        corrected = clause
        for unit, (near,) in nearest.items():
            written = near.upper() if unit.isupper() else near
            corrected = re.sub(rf"\b{unit}\b", written, corrected)
        fix = f"write {corrected}"
    return _refused(query, clause, token, reason, fix)


def _refused(
    query: Query, clause: str, token: Token, reason: str, fix: str = f"write {WRITTEN}"
) -> QueryRefused:
    return QueryRefused(query=query.name, clause=clause, reason=reason, fix=fix, line=token.line)
