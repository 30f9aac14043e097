"""Joins of tuples as they arrive, by windows that move with every tuple or by bounds on times."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from headgate.errors import QueryRefused
from headgate.language.analysis import Analysis, Analyst
from headgate.language.join_times import Unbounded, in_windows, times_of
from headgate.language.kinds.interface import StatefulKind
from headgate.language.over_windows import clause_inputs
from headgate.language.refusals import (
    BOTH,
    NO_WINDOW,
    STATELESS,
    WITH_TABLES,
    clause_of,
    keeps_stored,
    refuse_stateful,
    stream_joins,
)
from headgate.language.window_clause import Clause, move_with_tuples
from headgate.model.display.plan_summary import NotPossible, Reading
from headgate.model.query import Query
from headgate.model.window import MARK, Input, Join, Window

WHOLE = "write windows with the same SLIDE after all streams: then each window is computed whole"


@dataclass(frozen=True, kw_only=True)
class Joins(StatefulKind):
    """A join that computes the combinations of tuples of which one is new.

    Args:
        join: when its rows are final.
    """

    join: Join

    computed_by: ClassVar[str] = "headgate.spark.windows.joins:Joins"
    shares: ClassVar[str] = "a join"

    @property
    def way(self) -> str:
        """How it is computed, in words."""
        return "new tuples, with those in their windows"

    @property
    def in_common(self) -> object:
        """The streams, their windows, and when rows are final."""
        return self.inputs, self.join

    @property
    def reach(self) -> int:
        """How far behind the watermark a tuple may lie that is still needed."""
        return self.join.reach

    @property
    def closes(self) -> Window | None:
        """A window that ends when a tuple has lost its last possible partner."""
        if self.by_number:
            return None  # time changes nothing
        if not self.join.firsts:
            # Nothing is put out, but tuples that can no longer be joined are forgotten.
            return Window(axis="time", size=self.reach, slide=max(self.reach, 1_000_000))
        return Window(axis="time", size=self.reach + 1, slide=1)

    def refuse_event_time(self, query: Query) -> None:
        """Refuse an event time for the rows of a join by ROWS.

        Raises:
            QueryRefused: it is one.
        """
        if self.by_number:
            raise QueryRefused(
                query=query.name, clause="event_time",
                reason="is not possible for a join by ROWS: what is late would depend on how many"
                " tuples are joined at once", fix="join by RANGE",
            )  # fmt: skip

    @classmethod
    def refuse_unread(cls, query: Query, clauses: Sequence[Clause]) -> None:
        """Refuse `apply`, which needs whole windows.

        Raises:
            QueryRefused: the query has it.
        """
        if query.apply is not None and move_with_tuples(clauses):
            raise _not_applied(query)

    @classmethod
    def claims(cls, analysis: Analysis) -> bool:
        """Return True for windows that move with every tuple, and for joins without windows."""
        if analysis.called or analysis.clauses:
            return analysis.joins_on_arrival
        return bool(stream_joins(analysis.reading)) and not analysis.is_union

    @classmethod
    def of(cls, analysis: Analysis) -> tuple[Self, Reading]:
        """Return the windows of a join, when its rows are final, and its plan.

        Raises:
            QueryRefused: it would need tuples forever, or its rows would never be final.
        """
        query, analyst, reading = analysis.query, analysis.analyst, analysis.reading
        join = None
        if analysis.clauses:
            inputs = clause_inputs(query, analysis.clauses, reading, analysis.times)
        else:
            reading, join, inputs = _bounded(analysis)
        analyst.refuse_two_clocks(query, inputs)
        if len(reading.relations) > len(inputs):
            reading, inputs = _repeated(analyst, reading, inputs)
        outer = [node for node in stream_joins(reading) if node.detail not in ("Inner", "Cross")]
        by_number = not inputs[0].window.by_time
        if outer and by_number:
            raise QueryRefused(
                query=query.name, clause=f"{outer[0].detail} join", line=outer[0].line,
                reason="is not possible over ROWS windows",
                fix="use RANGE: time tells when no more partners can come",
            )  # fmt: skip
        refuse_in_pairs(query, reading)
        sizes = [source.window.size for source in inputs]
        try:
            plan = analyst.over_pairs(reading, inputs, bounded=join is not None)
            if by_number:
                join = Join(reach=max(sizes))
            join = join or times_of(in_windows(analyst.join_tree(reading)[0], sizes))[0]
        except NotPossible as error:
            raise not_over_pairs(query, error) from error
        except Unbounded as error:
            raise QueryRefused(
                query=query.name, clause="RANGE", reason="is longer than timestamps can express",
                fix="write shorter windows",
            ) from error  # fmt: skip
        return cls(inputs=inputs, key=plan.key, plans=plan, join=join), reading


def _bounded(analysis: Analysis) -> tuple[Reading, Join, tuple[Input, ...]]:
    """Return the inputs of a join whose conditions limit how far apart times may be."""
    query, analyst, times = analysis.query, analysis.analyst, analysis.times
    if query.apply is not None:
        raise _not_applied(query)
    refuse_stateful(query, analysis.reading, WITH_TABLES)
    refuse_timeless(query, analysis.reading, times)
    reading = analyst.numbered(analysis.reading)
    try:
        tree, names = analyst.join_tree(reading)
        join, sizes = times_of(tree)
    except NotPossible as error:
        raise not_over_pairs(query, error) from error
    except Unbounded as error:
        streams = reading.inputs
        earlier, later = (
            names.get(number, f"{streams[number]}.{times[streams[number]]}")
            for number in (error.earlier, error.later)
        )
        raise not_bounded(query, earlier, later, error.either, error.line) from error
    inputs = tuple(
        Input(
            stream=stream, view=f"{MARK}{number}",
            window=Window(axis="time", size=sizes[number]),
        )
        for number, stream in reading.inputs.items()
    )  # fmt: skip
    return reading, join, inputs


def _repeated(
    analyst: Analyst, reading: Reading, inputs: tuple[Input, ...]
) -> tuple[Reading, tuple[Input, ...]]:
    """Return the inputs of a query that uses a common table with a window more than once."""
    uses = [inputs[int(name.removeprefix(MARK))] for name in reading.relations]
    inputs = tuple(
        replace(source, view=f"{MARK}{number}") for number, source in enumerate(uses)
    )  # fmt: skip
    return analyst.numbered(reading, inputs[0].window.axis), inputs


def refuse_in_pairs(query: Query, reading: Reading) -> None:
    """Raise QueryRefused unless joining tuples as they arrive gives final results."""
    if keeps_stored(reading):
        reason = "keeps rows of a table that no tuple is joined with: a later tuple may still match"
        raise QueryRefused(query=query.name, clause="JOIN", reason=reason, fix=WHOLE)
    allowed = (*STATELESS, *WITH_TABLES)
    for node in reading.nodes:
        if node.reads and (node.in_subquery or node.kind not in allowed):
            raise not_over_pairs(query, NotPossible(node.kind, node.line))


def refuse_timeless(query: Query, reading: Reading, times: Mapping[str, str | None]) -> None:
    """Raise QueryRefused for a join without windows if a stream has no event time."""
    for name in reading.relations:
        if times[name] is None:
            raise QueryRefused(
                query=query.name, clause="JOIN", reason=NO_WINDOW,
                line=stream_joins(reading)[0].line,
                fix=f"write a window after each stream, as in FROM {name} [ROWS 100], or name the"
                f" column with the time, event_time: ts, in stream '{name}' and bound the times",
            )  # fmt: skip


def not_bounded(
    query: Query, earlier: str, later: str, either: bool, line: int | None
) -> QueryRefused:
    """Return the refusal of a join that would need the tuples of a stream forever.

    Args:
        earlier, later: columns with times; nothing limits how far `later` may be after `earlier`.
        either: whether nothing limits the opposite direction, either.
    """
    if either:
        reason = NO_WINDOW
        fix = f"{BOTH}, or bound their times, as in  {later} BETWEEN {earlier} - INTERVAL 5 SECONDS"
        fix += f" AND {earlier}"
    else:
        reason = "bounds the times of its streams on one side only:"
        reason += f" nothing limits how far {later} may be after {earlier}"
        fix = f"add to its condition, for example,  {later} <= {earlier} + INTERVAL 10 SECONDS"
    return QueryRefused(query=query.name, clause="JOIN", reason=reason, fix=fix, line=line)


def not_over_pairs(query: Query, error: NotPossible) -> QueryRefused:
    """Return the refusal of an operator over tuples that are joined as they arrive."""
    return QueryRefused(
        query=query.name, clause=clause_of(error.operator), line=error.line, fix=WHOLE,
        reason="over tuples that are joined as they arrive has no final answer",
    )  # fmt: skip


def _not_applied(query: Query) -> QueryRefused:
    return QueryRefused(
        query=query.name, clause="apply",
        reason="needs all tuples of a window, but this query joins tuples as they arrive",
        fix=WHOLE,
    )  # fmt: skip
