"""The kinds of queries over several tuples."""

from collections.abc import Sequence

from headgate.language.analysis import Analysis
from headgate.language.kinds.closing import ClosingWindows
from headgate.language.kinds.interface import StatefulKind
from headgate.language.kinds.joins import Joins
from headgate.language.kinds.sessions import Sessions
from headgate.language.kinds.unions import Unions
from headgate.language.window_clause import Clause
from headgate.model.query import Query

KINDS: tuple[type[StatefulKind], ...] = (ClosingWindows, Joins, Sessions, Unions)


def refuse_unread(query: Query, clauses: Sequence[Clause]) -> None:
    """Refuse a query that a kind refuses before Spark reads its text.

    Raises:
        QueryRefused: names the clause, the reason and the fix.
    """
    for kind in KINDS:
        kind.refuse_unread(query, clauses)


def kind_of(analysis: Analysis) -> type[StatefulKind] | None:
    """Return the kind of a query; None if it takes each tuple by itself."""
    return next((kind for kind in KINDS if kind.claims(analysis)), None)
