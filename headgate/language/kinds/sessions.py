"""Queries that group by session_window(...)."""

from dataclasses import dataclass
from typing import ClassVar, Self

from headgate.errors import QueryRefused
from headgate.language.analysis import Analysis
from headgate.language.durations import microseconds, unreadable
from headgate.language.kinds.interface import StatefulKind
from headgate.language.over_windows import call_of, called_input, text_of
from headgate.language.refusals import STATELESS, clause_of
from headgate.model.display.plan_summary import NotPossible, Reading, WindowCall
from headgate.model.query import Query
from headgate.model.window import Window

EXAMPLE = "session_window(ts, '5 minutes')"


@dataclass(frozen=True, kw_only=True)
class Sessions(StatefulKind):
    """A query that groups by session; a session is put out once it has ended."""

    takes_dead_letters: ClassVar[bool] = False
    computed_by: ClassVar[str] = "headgate.spark.windows.sessions:Sessions"

    @property
    def way(self) -> str:
        """How it is computed, in words."""
        return "sessions that have ended, from the start of the oldest that was open"

    @property
    def refuses_shedding(self) -> str:
        """Why no tuples may be dropped before it: equal queries share where open sessions begin."""
        return "groups by session: a session would be cut in two where its tuples were dropped"

    @property
    def reach(self) -> None:
        """None: how long tuples are needed depends on which sessions are open."""
        return None

    @classmethod
    def claims(cls, analysis: Analysis) -> bool:
        """Return True for session_window(...)."""
        return analysis.called == "session_window"

    @classmethod
    def of(cls, analysis: Analysis) -> tuple[Self, Reading]:
        """Return the gap and the plans of a query.

        Raises:
            QueryRefused: grouping by session is not all that it does with its tuples.
        """
        query, analyst, reading = analysis.query, analysis.analyst, analysis.reading
        call = call_of(query, reading)
        assert call is not None
        column = analyst.time_column(reading)
        inputs = (called_input(query, call, reading, column, analysis.times, session_of),)
        if query.apply is not None:
            raise QueryRefused(
                query=query.name, clause="apply", reason="is not possible after session_window",
                fix="group by session in the function, over a window as in FROM s [RANGE 1 HOUR]",
            )  # fmt: skip
        refuse_in_sessions(query, reading)
        try:
            plans = analyst.over_sessions(reading)
        except NotPossible as error:
            raise _not_grouped(query, error.line) from error
        return cls(inputs=inputs, key=plans.key, plans=plans), reading


def refuse_in_sessions(query: Query, reading: Reading) -> None:
    """Raise QueryRefused unless grouping by session is all that a query does with its tuples."""
    streamed = [node for node in reading.nodes if node.reads]
    others = [node for node in streamed if node.kind not in (*STATELESS, "Aggregate")]
    others += [node for node in streamed if node.in_subquery]
    grouped = [node for node in streamed if node.kind == "Aggregate"]
    if not grouped:
        raise _not_grouped(query, reading.calls[0].line)
    if others or len(grouped) > 1:
        node = (others or grouped)[0]
        raise QueryRefused(
            query=query.name, clause=clause_of(node.kind), line=node.line,
            reason="cannot be used on sessions: more of them may always follow",
            fix="drop it, or write a window after the stream, as in FROM s [RANGE 1 HOUR]",
        )  # fmt: skip


def _not_grouped(query: Query, line: int | None) -> QueryRefused:
    return QueryRefused(
        query=query.name, clause="session_window()", line=line,
        reason="does not stand by itself in GROUP BY",
        fix="write SELECT ... FROM s GROUP BY k, session_window(ts, '5 minutes')",
    )  # fmt: skip


def session_of(query: Query, call: WindowCall) -> Window:
    """Return the window of session_window(column, gap), whose size is the gap."""
    gap = microseconds(call.arguments[1]) if len(call.arguments) == 2 else None
    if gap is None:
        reason, corrected = unreadable(text_of(call))
        if corrected is None:
            reason = "has no gap that is the same for all tuples"
        raise QueryRefused(
            query=query.name, clause=text_of(call), line=call.line, reason=reason,
            fix=f"write {corrected or EXAMPLE}",
        )  # fmt: skip
    return Window(axis="time", size=gap)
