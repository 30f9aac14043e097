"""The words of a text, as sqlglot reads them."""

import sqlglot
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token

DIALECT = "spark"


def tokens_of(sql: str) -> list[Token]:
    """Gives the words of a text; none where sqlglot cannot read it."""
    try:
        return sqlglot.tokenize(sql, read=DIALECT)
    except SqlglotError:
        return []


def spaced(sql: str) -> str:
    """Gives a text with one space between two words: texts that differ in no more are equal.

    >>> spaced("SELECT  a\\n FROM s -- all of it")
    'SELECT a FROM s'
    """
    return " ".join(sql[token.start : token.end + 1] for token in tokens_of(sql)) or sql
