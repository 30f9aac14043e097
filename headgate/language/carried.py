"""Carries columns that no user sees through subqueries and CTEs, to where the text needs them."""

from collections.abc import Mapping, Sequence

from sqlglot.tokenizer_core import Token, TokenType

from headgate.language.clauses import all_columns, compares, depths_of

_SETS = (TokenType.UNION, TokenType.INTERSECT, TokenType.EXCEPT)


def carried(tokens: Sequence[Token], hidden: Mapping[int, Sequence[str]]) -> dict[int, str]:
    """Gives what to put before FROM in the subqueries around some relations.

    Args:
        hidden: the columns of relations, by their place in the text.
    """
    depths = [depth for _, depth in depths_of(tokens)]
    stars = set(all_columns(tokens))
    wanted: dict[int, list[str]] = {}
    for place, columns in hidden.items():
        for from_ in range(place):
            depth = depths[from_]
            within = not depth or tokens[from_].token_type != TokenType.FROM
            if within or compares(tokens, from_):
                continue
            select = _select(tokens, depths, from_)
            inside = all(
                depths[n] >= depth and not (depths[n] == depth and tokens[n].token_type in _SETS)
                for n in range(from_, place)
            )
            shown = {n for n in stars if select < n < from_ and depths[n] == depth}
            if select >= 0 and inside and not shown:
                wanted.setdefault(from_, []).extend(columns)
    return {from_: f", {', '.join(columns)} " for from_, columns in wanted.items()}


def without(tokens: Sequence[Token], place: int, column: str) -> tuple[int, str]:
    """Gives where to put what so that the * at a place has all columns but one."""
    if [each.text.upper() for each in tokens[place + 1 : place + 3]] == ["EXCEPT", "("]:
        return place + 3, f"{column}, "
    return place + 1, f" EXCEPT ({column}) "


def _select(tokens: Sequence[Token], depths: Sequence[int], from_: int) -> int:
    """Gives the SELECT that a FROM belongs to; −1 for the FROM in extract(year FROM ts)."""
    for place in range(from_ - 1, -1, -1):
        if depths[place] < depths[from_]:
            return -1
        if depths[place] == depths[from_] and tokens[place].token_type == TokenType.SELECT:
            return place
    return -1
