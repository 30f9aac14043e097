"""The kind of a query: which tuples it needs at a time, and how long it needs them."""

from dataclasses import dataclass, field
from typing import ClassVar

from headgate.model.query import Query
from headgate.model.window import Input, Window


@dataclass(frozen=True, kw_only=True)
class Kind:
    """The kind of a query, with what its text says about its streams and windows.

    All other code asks these questions instead of comparing kinds.

    Args:
        inputs: the streams that the text names, with their windows.
        key: the same number for queries that compute the same, whatever their windows are.
        plans: the plans that the engine computes it from; opaque to all other code.
    """

    inputs: tuple[Input, ...] = ()
    key: int = 0
    plans: object = field(default=None, compare=False, repr=False)

    takes_single_tuples: ClassVar[bool] = False
    """Whether it takes each tuple by itself, and so reads a stream instead of a timeline."""

    takes_dead_letters: ClassVar[bool] = True
    """Whether tuples that break an expression can be left out."""

    computed_by: ClassVar[str] = ""
    """The class in `spark/windows` that computes it, as MODULE:NAME."""

    shares: ClassVar[str] = ""
    """What queries with an equal `in_common` share, in words, for `explain`."""

    @property
    def way(self) -> str:
        """How it is computed, in words, for `explain`."""
        return ""

    @property
    def refuses_shedding(self) -> str:
        """Why no tuples may be dropped before it; empty if they may."""
        if self.by_number:
            return "has windows by ROWS: without some tuples, all later ones would lie in others"
        return ""

    @property
    def in_common(self) -> object:
        """A value that is equal for queries that had better run in one call; None if there is none.

        Equal queries run in one call in any case.
        """
        return None

    @property
    def reach(self) -> int | None:
        """How far behind the watermark a tuple may lie that is still needed.

        None if this depends on the tuples: then the computation reports it to `OpenSessions`.
        """
        return max((view.window.size for view in self.inputs), default=0)

    @property
    def closes(self) -> Window | None:
        """A window by time at whose ends there is work even if no tuple has arrived."""
        return None

    @property
    def by_time(self) -> bool:
        """Whether it places tuples by their time. Late tuples are then left out."""
        return any(view.window.by_time for view in self.inputs[:1])

    @property
    def by_number(self) -> bool:
        """Whether it places tuples by their number in the stream."""
        return any(not view.window.by_time for view in self.inputs[:1])

    @property
    def windows(self) -> tuple[Window, ...]:
        """The windows of its inputs."""
        return tuple(view.window for view in self.inputs)

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams of its inputs, each once."""
        return tuple(dict.fromkeys(view.stream for view in self.inputs))

    def delivered(self, rows: int, in_time: int) -> int:
        """Return how many tuples count as delivered: all that are not late.

        Args:
            rows: the number of results.
            in_time: the number of tuples that are not late.
        """
        return in_time

    def refuse_event_time(self, query: Query) -> None:
        """Refuse an event time for the stream that a query of this kind fills.

        Raises:
            QueryRefused: the time of a result would depend on the size of a call.
        """


@dataclass(frozen=True, kw_only=True)
class SingleTuples(Kind):
    """The kind of a query that takes each tuple by itself."""

    takes_single_tuples: ClassVar[bool] = True

    def delivered(self, rows: int, in_time: int) -> int:
        """Return how many tuples count as delivered; the others were filtered."""
        return min(rows, in_time)


SINGLE_TUPLES = SingleTuples()
