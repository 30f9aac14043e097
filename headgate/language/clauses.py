"""Where the clauses of a text stand, and how words are put before them."""

from collections.abc import Mapping, Sequence

from sqlglot.tokenizer_core import Token, TokenType

from headgate.errors import QueryRefused
from headgate.model.query import Query

_CLAUSES = ("FROM", "ON", "WHERE", "GROUP BY", "HAVING")


def places_of(tokens: Sequence[Token]) -> dict[str, int]:
    """Gives where the clauses of a SELECT begin."""
    found: dict[str, int] = {}
    for place, (token, depth) in enumerate(depths_of(tokens)):
        word = token.text.upper()
        quoted = token.token_type in (TokenType.STRING, TokenType.IDENTIFIER)
        if depth == 0 and not quoted and word in _CLAUSES and not compares(tokens, place):
            found.setdefault(word, place)
    return found


def compares(tokens: Sequence[Token], place: int) -> bool:
    """Tells of the FROM in a IS DISTINCT FROM b."""
    return bool(place) and tokens[place - 1].token_type == TokenType.DISTINCT


def depths_of(tokens: Sequence[Token]) -> list[tuple[Token, int]]:
    """Gives words with the number of brackets around them."""
    opening, closing = (TokenType.L_PAREN, TokenType.L_BRACKET), (
        TokenType.R_PAREN, TokenType.R_BRACKET
    )  # fmt: skip
    found, depth = [], 0
    for token in tokens:
        depth -= token.token_type in closing
        found.append((token, depth))
        depth += token.token_type in opening
    return found


def insert(text: str, tokens: Sequence[Token], inserted: Mapping[int, str]) -> str:
    """Puts words before tokens, by their number; behind all for the number of none."""
    made, at = "", 0
    for place in sorted(inserted):
        to = tokens[place].start if place < len(tokens) else tokens[-1].end + 1
        made, at = made + text[at:to] + inserted[place], to
    return made + (text[at : tokens[-1].end + 1] if at <= tokens[-1].end else "")


def all_columns(tokens: Sequence[Token]) -> list[int]:
    """Gives where * stands for all columns: neither in count(*) nor between factors."""
    before = {TokenType.SELECT, TokenType.DISTINCT, TokenType.ALL, TokenType.COMMA, TokenType.DOT,
              TokenType.L_PAREN}  # fmt: skip
    return [
        place
        for place, token in enumerate(tokens)
        if token.token_type == TokenType.STAR
        and tokens[place - 1].token_type in before
        and [each.text.lower() for each in tokens[place - 2 : place]] != ["count", "("]
    ]


def refuse_all_columns(query: Query, tokens: Sequence[Token]) -> None:
    """Refuses struct(*) and the like, where it would have columns that no user sees."""
    depths = depths_of(tokens)
    for place in all_columns(tokens):
        # In a subquery * is a list of columns, in a function an argument.
        inside = [each for each, depth in depths[:place] if depth == depths[place][1]]
        if depths[place][1] and not any(each.token_type == TokenType.SELECT for each in inside):
            raise QueryRefused(
                query=query.name, clause="*", reason="cannot be inside a function here",
                fix="name the columns, as in struct(k, v)", line=tokens[place].line,
            )  # fmt: skip
