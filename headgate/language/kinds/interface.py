"""The interface of the kinds of queries over several tuples: refusals, explanations, plans."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from headgate.language.analysis import Analysis
from headgate.language.window_clause import Clause
from headgate.model.display.plan_summary import Reading
from headgate.model.kind import Kind
from headgate.model.query import Query


@dataclass(frozen=True, kw_only=True)
class StatefulKind(Kind, ABC):
    """A kind of query that needs several tuples at a time and reads them from a timeline."""

    @classmethod
    def refuse_unread(cls, query: Query, clauses: Sequence[Clause]) -> None:
        """Refuse a query before Spark reads its text, because that runs its `apply`.

        Raises:
            QueryRefused: the clauses say enough to refuse it.
        """

    @classmethod
    @abstractmethod
    def claims(cls, analysis: Analysis) -> bool:
        """Return True if a query is of this kind. No two kinds claim the same query."""

    @classmethod
    @abstractmethod
    def of(cls, analysis: Analysis) -> tuple[Self, Reading]:
        """Return a query's kind with inputs and plans, and the reading that its plans belong to.

        Raises:
            QueryRefused: it cannot run continuously; names the clause, the reason and the fix.
        """
