"""Queries over windows that close: window(...), and window clauses that end together."""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from headgate.errors import QueryRefused
from headgate.language.analysis import Analysis
from headgate.language.durations import microseconds, unreadable
from headgate.language.kinds.interface import StatefulKind
from headgate.language.over_windows import call_of, called_input, clause_inputs, text_of
from headgate.language.refusals import keeps_stored
from headgate.model.display.plan_summary import NotPossible, Reading, WindowCall
from headgate.model.query import Query
from headgate.model.window import Window

EXAMPLE = "window(ts, '60 seconds', '10 seconds')"


@dataclass(frozen=True, kw_only=True)
class ClosingWindows(StatefulKind):
    """A query over windows of one stream, or over windows of several that end together.

    Args:
        at_once: whether all closed windows are computed at once, or one after the other.
    """

    at_once: bool = True

    computed_by: ClassVar[str] = "headgate.spark.windows.closing:ClosingWindows"

    @property
    def way(self) -> str:
        """How it is computed, in words."""
        if self.at_once:
            return "all closed windows at once"
        return "closed windows, one after the other"

    @property
    def in_common(self) -> object:
        """The aggregate; its windows may have different sizes."""
        return self.key if self.at_once else None

    @property
    def closes(self) -> Window | None:
        """The longest of its windows, which end together, if they end by time."""
        if not self.by_time:
            return None
        return replace(self.inputs[0].window, size=max(window.size for window in self.windows))

    @classmethod
    def claims(cls, analysis: Analysis) -> bool:
        """Return True for window(...) and for clauses, unless they move with every tuple."""
        if analysis.called:
            return analysis.called == "window"
        return bool(analysis.clauses) and not analysis.joins_on_arrival

    @classmethod
    def of(cls, analysis: Analysis) -> tuple[Self, Reading]:
        """Return a query's windows and plans.

        Raises:
            QueryRefused: its windows cannot be read, combined or computed.
        """
        query, analyst, reading = analysis.query, analysis.analyst, analysis.reading
        call = call_of(query, reading)
        if call is None:
            inputs = clause_inputs(query, analysis.clauses, reading, analysis.times)
        else:
            column = analyst.time_column(reading)
            inputs = (called_input(query, call, reading, column, analysis.times, window_of),)
        analyst.refuse_two_clocks(query, inputs)
        at_once = query.apply is None and not keeps_stored(reading)
        try:
            plans = analyst.over_windows(reading, at_once=at_once)
        except NotPossible as error:
            raise QueryRefused(
                query=query.name, clause="window()", line=error.line,
                reason="groups something other than the single tuples of a stream",
                fix="write a window after the stream, as in FROM s [RANGE 10 SECONDS]",
            ) from error  # fmt: skip
        kind = cls(
            inputs=inputs, key=plans.key, plans=plans, at_once=plans.at_once is not None
        )  # fmt: skip
        return kind, reading


def window_of(query: Query, call: WindowCall) -> Window:
    """Return the window of window(column, duration, slide, start), with Spark's meaning."""
    arguments = call.arguments
    durations = [microseconds(argument) for argument in arguments[1:3]]
    start = microseconds(arguments[3]) if len(arguments) > 3 else 0
    if not 2 <= len(arguments) <= 4 or None in durations or start is None:
        reason, corrected = unreadable(text_of(call))
        raise QueryRefused(
            query=query.name, clause=text_of(call), reason=reason, line=call.line,
            fix=f"write {corrected or EXAMPLE}",
        )  # fmt: skip
    size, slide = durations[0] or 0, durations[-1] or 0
    return Window(axis="time", size=size, slide=slide, offset=(start + size) % slide)
