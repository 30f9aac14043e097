"""What decides the kind of a query: its text, its window clauses, and Spark's analysis of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from headgate.language.window_clause import Clause, move_with_tuples
from headgate.model.display.plan_summary import Reading
from headgate.model.network.join_tree import JoinTree
from headgate.model.network.network import Path
from headgate.model.query import Query
from headgate.model.window import Axis, Input


class Plans(Protocol):
    """Plans of Spark's that compute a query."""

    @property
    def key(self) -> int:
        """The same number for plans with the same output rows."""


class WindowPlans(Plans, Protocol):
    """The plans of a query over windows that close."""

    @property
    def at_once(self) -> object:
        """The plan of many windows at once; None if they are computed one after the other."""


class Analyst(Protocol):
    """The analyzer of texts, in the words of `spark/jvm/query/analysis.py`, which implements it."""

    def read(self, query: Query, text: str, axes: Sequence[Axis] = ()) -> Reading: ...
    def refuse_two_clocks(self, query: Query, inputs: Sequence[Input]) -> None: ...
    def path(self, query: Query, reading: Reading) -> Path: ...
    def segments(self, path: Path, first: Path, rest: Path) -> tuple[Path, Path]: ...
    def key(self, reading: Reading) -> int: ...
    def time_column(self, reading: Reading) -> str: ...
    def numbered(self, reading: Reading, axis: Axis = "time") -> Reading: ...
    def join_tree(self, reading: Reading) -> tuple[JoinTree, dict[int, str]]: ...
    def over_windows(self, reading: Reading, *, at_once: bool) -> WindowPlans: ...
    def over_pairs(self, reading: Reading, inputs: Sequence[Input], *, bounded: bool) -> Plans: ...
    def over_sessions(self, reading: Reading) -> Plans: ...
    def over_union(self, reading: Reading) -> Plans: ...


@dataclass(frozen=True)
class Analysis:
    """A query that Spark has read, before its kind is known.

    Args:
        clauses: its window clauses.
        times: by stream, its event_time.
    """

    query: Query
    analyst: Analyst
    reading: Reading
    clauses: Sequence[Clause]
    times: Mapping[str, str | None]

    @property
    def called(self) -> str:
        """The function whose call gives the window, "window" or "session_window"; or ""."""
        calls = () if self.reading.inputs else self.reading.calls
        return calls[0].name if calls else ""

    @property
    def joins_on_arrival(self) -> bool:
        """Whether its window clauses ask for tuples to be joined as they arrive."""
        return not self.called and move_with_tuples(self.clauses)

    @property
    def is_union(self) -> bool:
        """Whether it is a union of SELECTs over streams."""
        top = next((node for node in self.reading.nodes if node.kind not in ("Project",)), None)
        return top is not None and top.kind == "Union" and bool(top.reads)
