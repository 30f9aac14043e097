"""USING in an outer join of streams, written as ON: a condition can be added to that."""

from collections.abc import Sequence

from sqlglot.tokenizer_core import Token, TokenType

from headgate.language.clauses import all_columns, depths_of, places_of
from headgate.language.tokens import tokens_of
from headgate.model.window import HIDDEN, Join

_BEFORE_NAMES = (
    *(TokenType.VAR, TokenType.IDENTIFIER, TokenType.NUMBER, TokenType.STRING, TokenType.END),
    *(TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.ALIAS, TokenType.DOT),
)
"""Words behind which a name is an alias or a field, and no column by itself."""
_BEFORE_COLUMNS = (TokenType.SELECT, TokenType.COMMA, TokenType.DISTINCT, TokenType.ALL)


def with_on(text: str, aliases: Sequence[str], join: Join) -> str:
    """Gives a text with ON instead of the USING of two streams; the same where it has none.

    What USING makes one column of two is named as such: that of the side whose tuples all come
    out, or, where both do, that of the one that is there.

    >>> text = "SELECT k, b.v FROM __hg_v0 AS `a` LEFT JOIN __hg_v1 AS `b` USING (k)"
    >>> with_on(text, ["a", "b"], "LeftOuter")
    'SELECT `a`.`k`, b.v FROM __hg_v0 AS `a` LEFT JOIN __hg_v1 AS `b` ON `a`.`k` = `b`.`k`'
    """
    tokens = tokens_of(text)
    second = next(place for place, token in enumerate(tokens) if token.text == f"{HIDDEN}v1")
    using = second + 3  # the view, AS and the alias
    if len(tokens) <= using or tokens[using].token_type != TokenType.USING:
        return text
    close = next(n for n in range(using, len(tokens)) if tokens[n].token_type == TokenType.R_PAREN)
    names = [token.text for token in tokens[using + 2 : close : 2]]
    left, right = (f"`{alias}`" for alias in aliases)
    on = " AND ".join(f"{left}.`{name}` = {right}.`{name}`" for name in names)
    written = {place: "" for place in range(using + 1, close + 1)} | {using: f"ON {on}"}
    if join not in ("LeftSemi", "LeftAnti"):
        columns = {name.lower(): _column(name, left, right, join) for name in names}
        both = [f"{side}.`{name}`" for name in names for side in (left, right)]
        written = _keys(tokens, columns, both) | written
    made, at = "", 0
    for place in sorted(written):
        made += text[at : tokens[place].start] if written[place] else ""
        made, at = made + written[place], tokens[place].end + 1
    return made + text[at:]


def _column(name: str, left: str, right: str, join: Join) -> str:
    if join == "FullOuter":
        return f"coalesce({left}.`{name}`, {right}.`{name}`)"
    return f"{left if join == 'LeftOuter' else right}.`{name}`"


def _keys(tokens: Sequence[Token], columns: dict[str, str], both: Sequence[str]) -> dict[int, str]:
    """Gives what is written for the columns of USING where they are named, and for * alone."""
    from_ = places_of(tokens)["FROM"]
    depths, written = depths_of(tokens), {}
    shown = ", ".join(f"{column} AS `{name}`" for name, column in columns.items())
    for place in all_columns(tokens):
        if place < from_ and not depths[place][1] and tokens[place - 1].token_type != TokenType.DOT:
            written[place] = f"{shown}, * EXCEPT ({', '.join(both)})"
    for place, (token, depth) in enumerate(depths):
        column, ends = columns.get(token.text.lower()), tokens[place + 1 : place + 2]
        quoted = token.token_type == TokenType.STRING
        if column is None or quoted or tokens[place - 1].token_type in _BEFORE_NAMES:
            continue
        if ends and ends[0].token_type in (TokenType.L_PAREN, TokenType.DOT, TokenType.ARROW):
            continue
        follows = tokens[place - 1].token_type in _BEFORE_COLUMNS and not depth and place < from_
        alone = follows and ends[0].token_type in (TokenType.COMMA, TokenType.FROM)
        written[place] = f"{column} AS `{token.text}`" if alone and "(" in column else column
    return written
