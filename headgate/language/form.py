"""Takes the constants out of a predicate, so that queries that differ in them alone are found."""

from typing import Literal

from sqlglot.tokenizer_core import Token, TokenType

from headgate.language.tokens import tokens_of
from headgate.model.form import Comparison, Constant, Form, Test

_COMPARISONS: dict[TokenType, Comparison] = {
    TokenType.EQ: "=",
    TokenType.LT: "<",
    TokenType.LTE: "<=",
    TokenType.GT: ">",
    TokenType.GTE: ">=",
}
_FLIPPED: dict[Comparison, Comparison] = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE}
_CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END}
_NO_CONJUNCTION = {TokenType.OR, TokenType.XOR, TokenType.SEMICOLON}
_NO_COMPARISON = {TokenType.NOT, TokenType.IS, TokenType.IN, TokenType.LIKE, TokenType.RLIKE}
_INT32 = 2**31


def form_of(predicate: str) -> tuple[Form, tuple[Constant, ...]] | None:
    """Gives a predicate's form and its constants; None where it is no conjunction of tests.

    >>> form, constants = form_of("place = 'north' AND heat > 30 AND name LIKE 'a%'")
    >>> [(test.left, test.comparison) for test in form.tests], form.rest, constants
    ([('place', '='), ('heat', '>')], ("name LIKE 'a%'",), ('north', 30))
    """
    conditions = _conjuncts(tokens_of(predicate))
    tests: list[Test] = []
    constants: list[Constant] = []
    rest: list[str] = []
    for words in conditions:
        found = _between(predicate, words) or _test(predicate, words)
        if not found:
            rest.append(_text(predicate, words))
        for test, constant in found:
            tests.append(test)
            constants.append(constant)
    return (Form(tuple(tests), tuple(rest)), tuple(constants)) if tests else None


def conditions_of(predicate: str) -> list[str]:
    """Gives the conditions that are joined by AND, as they are written; none if OR is among them.

    >>> conditions_of("a > 1 AND b BETWEEN 2 AND 3 AND (c OR d)")
    ['a > 1', 'b BETWEEN 2 AND 3', '(c OR d)']
    """
    return [_text(predicate, words) for words in _conjuncts(tokens_of(predicate))]


def _conjuncts(tokens: list[Token]) -> list[list[Token]]:
    """Cuts words at AND, but for that of BETWEEN; nothing where OR stands beside them."""
    parts: list[list[Token]] = [[]]
    depth = between = 0
    for token in tokens:
        kind = token.token_type
        depth -= kind in _CLOSING
        if not depth and kind in _NO_CONJUNCTION:
            return []
        between += not depth and kind == TokenType.BETWEEN
        if not depth and kind == TokenType.AND and not between:
            parts.append([])
        else:
            between -= not depth and kind == TokenType.AND
            parts[-1].append(token)
        depth += kind in _OPENING
    return parts if all(parts) else []


def _between(sql: str, words: list[Token]) -> list[tuple[Test, Constant]]:
    """Gives the two comparisons of BETWEEN; none for every other condition."""
    kinds = [token.token_type for token in words]
    if kinds.count(TokenType.BETWEEN) != 1 or kinds[-1] not in (TokenType.NUMBER, TokenType.STRING):
        return []
    at = kinds.index(TokenType.BETWEEN)
    if TokenType.AND not in kinds[at:] or {*kinds[:at]} & (
        _CLOSING | _NO_COMPARISON | {*_COMPARISONS}
    ):
        return []
    middle = at + kinds[at:].index(TokenType.AND)
    ends = _constant(sql, words[at + 1 : middle]), _constant(sql, words[middle + 1 :])
    left = words[:at]
    if not left or ends[0] is None or ends[1] is None:
        return []
    return [
        (Test(_text(sql, left), ">=", _kind(ends[0])), ends[0]),
        (Test(_text(sql, left), "<=", _kind(ends[1])), ends[1]),
    ]


def _test(sql: str, words: list[Token]) -> list[tuple[Test, Constant]]:
    """Gives a comparison with a constant; none for every other condition."""
    at, depth = [], 0
    for place, token in enumerate(words):
        depth -= token.token_type in _CLOSING
        if not depth and token.token_type in _NO_COMPARISON:
            return []
        if not depth and token.token_type in _COMPARISONS:
            at.append(place)
        depth += token.token_type in _OPENING
    if len(at) != 1:
        return []
    left, right = words[: at[0]], words[at[0] + 1 :]
    comparison = _COMPARISONS[words[at[0]].token_type]
    if not left or not right:
        return []
    constant = _constant(sql, right)
    if constant is None:
        constant, left, comparison = _constant(sql, left), right, _FLIPPED[comparison]
    if constant is None or _constant(sql, left) is not None:
        return []
    return [(Test(_text(sql, left), comparison, _kind(constant)), constant)]


def _kind(constant: Constant) -> Literal["int", "decimal", "string"]:
    if isinstance(constant, str):
        return "string"
    return "int" if isinstance(constant, int) else "decimal"


def _constant(sql: str, words: list[Token]) -> Constant | None:
    """Gives the value of a plain literal: digits, digits with a point, or plain letters quoted."""
    if not words:
        return None
    text = _text(sql, words)
    if len(words) == 1 and words[0].token_type == TokenType.STRING:
        inner = text[1:-1]
        plain = len(text) > 1 and text[0] == text[-1] == "'" and not set(inner) & set("'\\")
        return inner if plain else None
    digits = text.removeprefix("-").strip()
    if not digits.isascii() or len(words) > 2 or words[-1].token_type != TokenType.NUMBER:
        return None
    if digits.isdecimal():
        return int(text.replace(" ", "")) if int(digits) < _INT32 else None
    whole, point, part = digits.partition(".")
    plain = bool(point) and (whole + part).isdecimal()
    return float(text.replace(" ", "")) if plain else None


def _text(sql: str, words: list[Token]) -> str:
    return sql[words[0].start : words[-1].end + 1]
