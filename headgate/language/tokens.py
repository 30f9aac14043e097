"""The tokens of a text, as sqlglot reads them."""

import sqlglot
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token

DIALECT = "spark"


def tokens_of(sql: str) -> list[Token]:
    """Return the tokens of a text; none if sqlglot cannot read it."""
    try:
        return sqlglot.tokenize(sql, read=DIALECT)
    except SqlglotError:
        return []
