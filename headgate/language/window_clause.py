"""CQL's window clause, `FROM s [RANGE 60 SECONDS SLIDE 10 SECONDS]`, which Spark cannot parse."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from headgate.errors import QueryRefused
from headgate.language.durations import microseconds, unreadable
from headgate.model.query import Query
from headgate.model.window import MARK, WRITTEN, Window

_WORDS = re.compile(
    r"""
    (?P<comment> --(?:\\\n|[^\r\n])* | /\* | \s+ )
    | r'[^']*(?:'|\Z) | r"[^"]*(?:"|\Z)
    | '(?:[^'\\]|\\.)*(?:'|\\?\Z) | "(?:[^"\\]|\\.)*(?:"|\\?\Z)
    | (?P<name> `(?:[^`]|``)*(?:`|\Z) | [^\W\d]\w* )
    | (?P<clause> \[\s*(?P<kind>RANGE|ROWS)\s+(?=[\d'"A-Za-z])
        (?!(?:DIV|AND|OR|NOT|IS|IN|BETWEEN|LIKE|ILIKE|RLIKE|REGEXP|COLLATE)\b)
        (?P<size>[^\]]*)(?P<end>\])? )
    | .
    """,
    re.DOTALL | re.IGNORECASE | re.VERBOSE,
)
"""Comments and space, strings, names, window clauses, and anything else, one character at a time.

An array index that uses a column called rows or range, as in a[rows DIV 2], is no clause.
"""

_CLAUSE = re.compile(r"\[\s*(?:RANGE|ROWS)\s", re.IGNORECASE)
_BRACKETS = re.compile(r"/\*|\*/")
_NO_NAMES = ("from", "join")


@dataclass(frozen=True)
class Clause:
    """A window clause after the name of a stream. Clauses are numbered in the order of the text."""

    stream: str
    window: Window
    text: str
    line: int


def marked(query: Query) -> tuple[str, tuple[Clause, ...]]:
    """Return a text that Spark can parse, and the window clauses that were cut out of it.

    In place of its clause, a relation carries the clause's number as an option. Line numbers do not
    change.

    Raises:
        QueryRefused: a clause cannot be read.

    >>> text, clauses = marked(Query(name="q", sql="SELECT * FROM s [ROWS 5] x", query_class="H"))
    >>> print(text)
    SELECT * FROM s WITH ('__hg_input' = '0') x
    >>> clauses[0].stream, clauses[0].window.size
    ('s', 5)
    """
    sql, text, place = query.sql, "", 0
    clauses: list[Clause] = []
    for match, name in clauses_in(sql):
        line = sql.count("\n", 0, match.start()) + 1
        clause = match.group()
        if match["end"] is None:
            raise _refused(query, clause.strip(), line, "is not closed")
        if not name or name.lower() in _NO_NAMES:
            raise _refused(query, clause, line, "does not follow the name of a stream")
        stream = name[1:-1].replace("``", "`") if name.startswith("`") else name
        window = _window(query, clause, line, match["kind"].upper(), match["size"])
        option = f"WITH ('{MARK}' = '{len(clauses)}')" + "\n" * clause.count("\n")
        text, place = text + sql[place : match.start()] + option, match.end()
        clauses.append(Clause(stream, window, clause, line))
    return text + sql[place:], tuple(clauses)


def move_with_tuples(clauses: Sequence[Clause]) -> bool:
    """Return True if windows of several streams move with every tuple, instead of ending."""
    return len(clauses) > 1 and clauses[0].window.slide is None


def clauses_in(sql: str) -> Iterator[tuple[re.Match[str], str]]:
    """Yield the window clauses of a text, each with the name before it, or "".

    Strings, comments and quoted names contain no clauses.
    """
    if not _CLAUSE.search(sql):
        return
    place, name = 0, ""
    while place < len(sql):
        match = _WORDS.match(sql, place)
        assert match is not None
        place = match.end()
        if match["clause"]:
            yield match, name
        if match["comment"] is None:
            name = match["name"] or ""
        elif match["comment"] == "/*":
            place = _end_of_comment(sql, place)


def _end_of_comment(sql: str, place: int) -> int:
    """Return the place after a bracketed comment, which may contain others."""
    depth = 1
    for bracket in _BRACKETS.finditer(sql, place):
        depth += 1 if bracket.group() == "/*" else -1
        if not depth:
            return bracket.end()
    return len(sql)


def _window(query: Query, clause: str, line: int, kind: str, words: str) -> Window:
    """Return the window that is written between the brackets."""
    size_text, *rest = re.split(r"\bSLIDE\b", words, maxsplit=1, flags=re.IGNORECASE)
    parts = [size_text.strip(), *(text.strip() for text in rest)]
    if kind == "ROWS":
        sizes = [int(part) if re.fullmatch(r"\d{1,18}", part) else None for part in parts]
    else:
        sizes = [microseconds(part) for part in parts]
    if not all(sizes):
        reason, corrected = unreadable(clause) if kind == "RANGE" else ("cannot be read", None)
        raise _refused(query, clause, line, reason, corrected or WRITTEN)
    size, slide = sizes[0], sizes[1] if rest else None
    assert size is not None
    return Window(axis="rows" if kind == "ROWS" else "time", size=size, slide=slide)


def _refused(
    query: Query, clause: str, line: int, reason: str, proposal: str = WRITTEN
) -> QueryRefused:
    return QueryRefused(
        query=query.name, clause=clause, reason=reason, fix=f"write {proposal}", line=line
    )
