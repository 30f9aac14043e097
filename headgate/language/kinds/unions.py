"""Unions of SELECTs over streams, in the order of event time."""

from dataclasses import dataclass
from typing import ClassVar, Self

from headgate.errors import QueryRefused
from headgate.language.analysis import Analysis
from headgate.language.kinds.interface import StatefulKind
from headgate.language.refusals import WITH_TABLES, keeps_stored, refuse_stateful, stream_joins
from headgate.model.display.plan_summary import NotPossible, Reading
from headgate.model.window import Input, Window


@dataclass(frozen=True, kw_only=True)
class Unions(StatefulKind):
    """A union, which puts out the tuples that the watermark has passed, in the order of time."""

    computed_by: ClassVar[str] = "headgate.spark.windows.unions:Unions"

    @property
    def way(self) -> str:
        """How it is computed, in words."""
        return "tuples in the order of event time, once no earlier one can come"

    @property
    def closes(self) -> Window:
        """A window of one instant: a tuple is put out once the watermark has passed it."""
        return Window(axis="time", size=1, slide=1)

    @classmethod
    def claims(cls, analysis: Analysis) -> bool:
        """Return True for a union without windows."""
        return analysis.is_union and not analysis.called and not analysis.clauses

    @classmethod
    def of(cls, analysis: Analysis) -> tuple[Self, Reading]:
        """Return the streams and the plan of a union.

        Raises:
            QueryRefused: a stream has no event time, or a part is not a SELECT from a stream.
        """
        query, analyst, reading = analysis.query, analysis.analyst, analysis.reading
        inputs = _inputs(analysis)
        analyst.refuse_two_clocks(query, inputs)
        if query.apply is not None:
            raise QueryRefused(
                query=query.name, clause="apply", reason="is not possible after a union of streams",
                fix="write one query for each stream",
            )  # fmt: skip
        joined = stream_joins(reading) or keeps_stored(reading)
        refuse_stateful(query, reading, (frozenset() if joined else WITH_TABLES) | {"Union"})
        try:
            plan = analyst.over_union(reading)
        except NotPossible as error:
            raise QueryRefused(
                query=query.name, clause="UNION", line=error.line,
                reason="has a part that is not SELECT ... FROM a stream",
                fix="write SELECT ... FROM a UNION ALL SELECT ... FROM b, without other brackets",
            ) from error  # fmt: skip
        return cls(inputs=inputs, key=plan.key, plans=plan), reading


def _inputs(analysis: Analysis) -> tuple[Input, ...]:
    names = tuple(dict.fromkeys(analysis.reading.relations))
    for name in names:
        if analysis.times[name] is None:
            raise QueryRefused(
                query=analysis.query.name, clause="UNION",
                reason=f"is in the order of time, and stream '{name}' has no event_time",
                fix=f"name the column with the time, event_time: ts, in stream '{name}'",
            )  # fmt: skip
    return tuple(
        Input(stream=name, view=name, window=Window(axis="time", size=0)) for name in names
    )
