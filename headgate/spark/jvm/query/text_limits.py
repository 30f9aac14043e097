"""Limits on a text before Spark parses it: its length, its words and its depth of nesting.

Spark's parser needs memory for every word and stack for every level of nesting. With 3 000 nested
parentheses, it ran for more than 30 seconds.
"""

import re

from headgate.errors import QueryRefused
from headgate.model.query import Query
from headgate.model.settings import Settings

WORDS_PER_NODE = 4
"""Words and signs of SQL per operator or expression of a plan; there are rarely more."""

# Strings, comments and quoted names end where Spark's lexer (SqlBaseLexer.g4) ends them.
_PIECE = re.compile(
    r"""
      (?P<skip> \s+ | --(?:\\\n|[^\r\n])*+ )
    | (?P<comment> /\*(?!\+) )
    | (?P<quoted> [rR]'[^']*+' | [rR]"[^"]*+" | `(?:[^`]++|``)*+`
        | '(?:[^'\\]++|\\.|'')*+' | "(?:[^"\\]++|\\.|"")*+"
        | \$(?P<tag>[a-zA-Z]*+)\$(?:.*?\$(?P=tag)\$|.*) )
    | (?P<word> \w+ )
    | (?P<sign> -> | . )
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT_MARK = re.compile(r"/\*(?!\+)|\*/")
_OPENED_BY = {")": "(", "]": "[", ">": "<", "END": "CASE"}
_NESTED_TYPES = ("ARRAY", "MAP", "STRUCT")
_TABLE = "keep long lists of values in a table and join it"


def refuse_text(query: Query, settings: Settings) -> None:
    """Raise QueryRefused if a text is longer or more deeply nested than the settings allow."""
    size = len(query.sql.encode("utf-8", "surrogatepass"))
    if size > settings.most_text_bytes:
        raise QueryRefused(
            query=query.name, clause="the text",
            reason=f"has {size:,} bytes, and {settings.most_text_bytes:,} are allowed",
            fix=f"{_TABLE}, or raise most_text_bytes",
        )  # fmt: skip
    words = dots = position = 0
    open_: list[str] = []
    before = ""
    while (piece := _PIECE.match(query.sql, position)) is not None:
        start, position = position, piece.end()
        if piece.lastgroup == "skip":
            continue
        depth = 0
        if piece.lastgroup == "comment":
            depth, position = _comment(query.sql, start)
        else:
            words += 1
            text = "" if piece.lastgroup == "quoted" else piece.group().upper()
            # At every dot in a chain such as a.b.c.d, the parser copies all names before it.
            dots = dots + 1 if text == "." else dots if before == "." else 0
            _nest(open_, text, before)
            before = text
        if max(_depth(open_) + depth, dots) > settings.most_nesting:
            raise too_deep(
                query, f"is nested more than {settings.most_nesting:,} levels deep",
                query.sql.count("\n", 0, start) + 1,
            )  # fmt: skip
        if words > WORDS_PER_NODE * settings.most_plan_nodes:
            raise QueryRefused(
                query=query.name, clause="the text",
                reason=f"has more than {words - 1:,} words and signs, too many for a plan of"
                f" {settings.most_plan_nodes:,} operators and expressions",
                fix=f"{_TABLE}, or raise most_plan_nodes",
            )  # fmt: skip


def too_deep(query: Query, reason: str, line: int | None = None) -> QueryRefused:
    """Return the error for a text that is nested too deep."""
    return QueryRefused(
        query=query.name, clause="the text", reason=reason, line=line,
        fix="make it flatter, or write several queries, or raise most_nesting",
    )  # fmt: skip


def _nest(open_: list[str], text: str, before: str) -> None:
    """Update the open levels of nesting if a word or sign opens or closes one."""
    if before == ".":  # part of a name, such as window.end
        return
    if text in ("(", "[", "->", "CASE") or (text == "<" and before in _NESTED_TYPES):
        open_.append(text)
    elif text == ",":
        while open_ and open_[-1] == "->":  # a lambda ends where its argument does
            open_.pop()
    elif (opening := _OPENED_BY.get(text)) in open_:
        # What is still open inside was not nesting: it was a comparison, or a column named CASE.
        while text != ">" and open_[-1] != opening:
            open_.pop()
        if open_[-1] == opening:
            open_.pop()


def _depth(open_: list[str]) -> int:
    """Return the depth of brackets or of CASEs, whichever is greater: `(CASE` counts once."""
    cases = open_.count("CASE")
    return max(cases, len(open_) - cases)


def _comment(sql: str, start: int) -> tuple[int, int]:
    """Return how deep a comment is nested, and the position of its end."""
    depth = deepest = 0
    position = start
    while (mark := _COMMENT_MARK.search(sql, position)) is not None:
        position = mark.end()
        depth += -1 if mark.group() == "*/" else 1
        deepest = max(deepest, depth)
        if not depth:
            return deepest, position
    return deepest, len(sql)
