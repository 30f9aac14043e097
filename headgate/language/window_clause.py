"""CQL's window clause, `FROM s [RANGE 60 SECONDS SLIDE 10 SECONDS]`, which Spark cannot parse."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from headgate.errors import QueryRefused
from headgate.language.durations import microseconds, unreadable
from headgate.model.query import Query
from headgate.model.window import MARK, WRITTEN, Window

_SKIPPED = re.compile(
    r"""--[^\n]*|/\*.*?\*/|r'[^']*'|r"[^"]*"|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`(?:[^`]|``)*`""",
    re.DOTALL | re.IGNORECASE,
)
"""Comments, strings and quoted names: what is inside is no clause."""

_CLAUSE = re.compile(r"\[\s*(RANGE|ROWS)\s+(?=[\d'\"A-Za-z-])([^\]]*)(\])?", re.IGNORECASE)
_NAME = re.compile(r"(?:`((?:[^`]|``)+)`|([A-Za-z_]\w*))\s*\Z")


@dataclass(frozen=True)
class Clause:
    """A window behind the name of a stream, by its place among the windows of the text."""

    stream: str
    window: Window
    text: str
    line: int


def marked(query: Query) -> tuple[str, tuple[Clause, ...]]:
    """Return a text that Spark can parse, and the windows that were cut out of it.

    A relation with a window carries its number as an option instead, so lines stay where they are.

    Raises:
        QueryRefused: a clause cannot be read.

    >>> text, clauses = marked(Query(name="q", sql="SELECT * FROM s [ROWS 5] x", query_class="H"))
    >>> print(text)
    SELECT * FROM s WITH ('__hg_input' = '0') x
    >>> clauses[0].stream, clauses[0].window.size
    ('s', 5)
    """
    sql, text, at = query.sql, "", 0
    clauses: list[Clause] = []
    for match in clauses_in(sql):
        line = sql.count("\n", 0, match.start()) + 1
        clause = match.group(0)
        if match.group(3) is None:
            raise _refused(query, clause.strip(), line, "is not closed")
        name = _NAME.search(sql[: match.start()])
        if name is None:
            raise _refused(query, clause, line, "does not stand behind the name of a stream")
        stream = (name.group(1) or "").replace("``", "`") or name.group(2)
        window = _window(query, clause, line, match.group(1).upper(), match.group(2))
        option = f"WITH ('{MARK}' = '{len(clauses)}')" + "\n" * clause.count("\n")
        text, at = text + sql[at : match.start()] + option, match.end()
        clauses.append(Clause(stream, window, clause, line))
    return text + sql[at:], tuple(clauses)


def clauses_in(sql: str) -> Iterator[re.Match[str]]:
    """Yield the window clauses of a text: not those in strings, comments and quoted names."""
    at = 0
    while at < len(sql):
        skipped, clause = _SKIPPED.search(sql, at), _CLAUSE.search(sql, at)
        if clause is None:
            return
        if skipped is not None and skipped.start() < clause.start():
            at = skipped.end()
            continue
        yield clause
        at = clause.end()


def _window(query: Query, clause: str, line: int, kind: str, words: str) -> Window:
    """Read what stands between the brackets."""
    size_text, *rest = re.split(r"\bSLIDE\b", words, maxsplit=1, flags=re.IGNORECASE)
    parts = [size_text.strip(), *(each.strip() for each in rest)]
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
