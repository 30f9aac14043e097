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
