"""Where the clauses of a text stand, and how words are put before them."""

from collections.abc import Mapping, Sequence

from sqlglot.tokenizer_core import Token, TokenType

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
