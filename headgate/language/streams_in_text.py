"""The streams that a text names, judged by its tokens alone, before Spark has read it."""

from collections.abc import Iterable
from contextlib import suppress
from itertools import pairwise

from sqlglot.tokenizer_core import TokenType

from headgate.errors import HeadgateError
from headgate.language.tokens import tokens_of
from headgate.language.window_clause import marked
from headgate.model.query import Query


def streams_in(query: Query, streams: Iterable[str]) -> tuple[str, ...]:
    """Return those of the streams that the text names after FROM or JOIN, or with a window.

    >>> text = "SELECT b FROM A x JOIN t ON x.a = t.a"
    >>> streams_in(Query(name="q", sql=text, query_class="H"), ["a", "b", "c"])
    ('a',)
    """
    spellings = {name.lower(): name for name in streams}
    tokens = tokens_of(query.sql)
    names = [
        name.text
        for before, name in pairwise(tokens)
        if before.token_type in (TokenType.FROM, TokenType.JOIN)
    ]
    with suppress(HeadgateError):  # the error is raised later, when the text is parsed
        names += [clause.stream for clause in marked(query)[1]]
    return tuple(
        dict.fromkeys(spellings[name.lower()] for name in names if name.lower() in spellings)
    )
