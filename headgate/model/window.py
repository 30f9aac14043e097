"""Windows, and queries that need more than one tuple at a time."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

Axis = Literal["time", "rows"]

HIDDEN = "__hg_"
"""How columns and views begin that no user sees."""

WRITTEN = "[RANGE 60 SECONDS SLIDE 10 SECONDS], [RANGE 10 SECONDS] or [ROWS 100 SLIDE 10]"
"""How windows are written behind the name of a stream."""

MARK, GIVEN = f"{HIDDEN}input", f"{HIDDEN}given"
"""How the relations of inputs with a window, and of that window itself, begin."""

TIME, ROW, WINDOW = f"{HIDDEN}time", f"{HIDDEN}row", f"{HIDDEN}window"
"""Columns of a stream that no user sees: a tuple's time, its number in a call, its window."""


@dataclass(frozen=True, kw_only=True)
class Window:
    """The tuples of [end − size, end), by their time in microseconds or by their number.

    Args:
        slide: ends lie so far apart; None for the window of a join, which moves with every tuple,
            and for sessions: these end `size` behind their last tuple.
        offset: where one of the ends lies.
    """

    axis: Axis
    size: int
    slide: int | None = None
    offset: int = 0


@dataclass(frozen=True, kw_only=True)
class Input:
    """A stream where a query names it: the view that stands for it, and which tuples that has."""

    stream: str
    view: str
    window: Window


Mode = Literal["windows", "each", "pairs", "union", "sessions"]


@dataclass(frozen=True, kw_only=True)
class Join:
    """When the rows of a join of tuples as they come are final.

    Args:
        reach: how far back from the watermark a tuple may lie that is still needed.
        firsts: the inputs that can be the first, from the left, of which a row has a tuple, where
            the row comes out only when no partner can come any more.
        waits: by input, how far behind the time of such a tuple a partner may still come.
        complete: whether rows with a tuple of every input come out as soon as they can; the rows of
            LEFT SEMI and LEFT ANTI never do.
    """

    reach: int
    firsts: tuple[int, ...] = ()
    waits: tuple[int, ...] = ()
    complete: bool = True


@dataclass(frozen=True, kw_only=True)
class Stateful:
    """How a query is computed that needs more than one tuple at a time.

    Args:
        mode: `windows` computes all windows that have closed at once, `each` one after the other,
            `pairs` the combinations of tuples of which one is new, `union` the tuples that the
            watermark has passed, in the order of their time, `sessions` those that have ended.
        key: the same number for queries that compute the same, whatever their windows are.
        join: of `pairs`, when its rows are final.
        plans: what the engine computes it from; opaque to everybody else.
    """

    mode: Mode
    inputs: tuple[Input, ...]
    key: int = 0
    join: Join | None = None
    plans: object = field(default=None, compare=False, repr=False)

    @property
    def reach(self) -> int:
        """How far back from the watermark a tuple may lie that is still needed."""
        return self.join.reach if self.join else max(each.window.size for each in self.inputs)

    @property
    def closes(self) -> Window:
        """A window whose ends are when there is something to do although no tuple has come."""
        window = self.inputs[0].window
        if self.mode in ("windows", "each"):
            return window
        if window.axis == "rows":
            return window  # of a join of tuples as they come: time changes nothing
        if self.join is not None and not self.join.firsts:
            # Nothing comes out, but what no tuple can be joined with any more is forgotten.
            return Window(axis="time", size=self.reach, slide=max(self.reach, 1_000_000))
        return Window(axis="time", size=self.reach + 1, slide=1)

    @property
    def windows(self) -> tuple[Window, ...]:
        """The windows of its views."""
        return tuple(each.window for each in self.inputs)

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams it reads, each once."""
        return tuple(dict.fromkeys(each.stream for each in self.inputs))


def time_column(number: int) -> str:
    """Names the time of the tuples of a view."""
    return f"{HIDDEN}t{number}"


def place_columns(number: int, windows: Sequence[Window]) -> tuple[str, ...]:
    """Names what tells where the tuples of a view lie that are joined as they come.

    By time that is their own; by number also how many of each other view's stream had come.

    >>> place_columns(1, [Window(axis="rows", size=5)] * 2)
    ('__hg_t1', '__hg_s1_0')
    """
    others = [n for n in range(len(windows)) if n != number and windows[0].axis == "rows"]
    return (time_column(number), *(seen_column(number, other) for other in others))


def seen_column(number: int, other: int) -> str:
    """Names how many tuples of another view's stream had come when one of a view did."""
    return f"{HIDDEN}s{number}_{other}"


def arrival_column(number: int) -> str:
    """Names the arrival of the tuples of a view."""
    return f"{HIDDEN}a{number}"


def timeline_of(streams: tuple[str, ...]) -> str:
    """Gives the name of the stream of all tuples of some streams, in the order they came in.

    >>> timeline_of(("trades", "quotes"))
    'quotes__trades__time'
    """
    return "__".join((*sorted(streams), "time"))
