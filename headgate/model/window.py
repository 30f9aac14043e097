"""Windows of streams, and the hidden columns and relations of queries over them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Axis = Literal["time", "rows"]

HIDDEN = "__hg_"
"""Prefix of columns and views that no user sees."""

WRITTEN = "[RANGE 60 SECONDS SLIDE 10 SECONDS], [RANGE 10 SECONDS] or [ROWS 100 SLIDE 10]"
"""How a window is written after the name of a stream."""

MARK, GIVEN = f"{HIDDEN}input", f"{HIDDEN}given"
"""Prefixes of two relations: an input that has a window, and that window itself."""

TIME, ROW, WINDOW = f"{HIDDEN}time", f"{HIDDEN}row", f"{HIDDEN}window"
"""Hidden columns of a stream: a tuple's time, its number in a call, its window."""


@dataclass(frozen=True, kw_only=True)
class Window:
    """The tuples in [end − size, end), by their time in microseconds or by their number.

    Args:
        slide: the distance between two ends. None for the window of a join, which moves with every
            tuple, and for sessions, which end `size` after their last tuple.
        offset: the position of one of the ends.
    """

    axis: Axis
    size: int
    slide: int | None = None
    offset: int = 0

    @property
    def by_time(self) -> bool:
        """Whether it has tuples by their time, and not by their number."""
        return self.axis == "time"


@dataclass(frozen=True, kw_only=True)
class Input:
    """A stream that a query names, the view that stands for it there, and the view's window."""

    stream: str
    view: str
    window: Window


@dataclass(frozen=True, kw_only=True)
class Join:
    """When the rows of a join are final, if its tuples are joined as they arrive.

    Args:
        reach: how far behind the watermark a tuple may lie that is still needed.
        firsts: inputs for rows that are put out only when no partner can arrive any more. An input
            is here if it can be the first one, from the left, that such a row has a tuple of.
        waits: by input, how long after the time of that tuple a partner may still lie.
        complete: whether rows with a tuple of every input are put out as soon as possible; the rows
            of LEFT SEMI and LEFT ANTI never are.
    """

    reach: int
    firsts: tuple[int, ...] = ()
    waits: tuple[int, ...] = ()
    complete: bool = True


def time_column(number: int) -> str:
    """Return the name of the column with the time of a view's tuples."""
    return f"{HIDDEN}t{number}"


def place_columns(number: int, windows: Sequence[Window]) -> tuple[str, ...]:
    """Return the columns that place the tuples of a view, where tuples are joined as they arrive.

    For windows by time this is the tuple's time. For windows by number it is also, for each other
    view, how many tuples of that view's stream had arrived before.

    >>> place_columns(1, [Window(axis="rows", size=5)] * 2)
    ('__hg_t1', '__hg_s1_0')
    """
    others = counted(number, len(windows), windows[0].axis)
    return (time_column(number), *(seen_column(number, other) for other in others))


def counted(number: int, count: int, axis: Axis) -> tuple[int, ...]:
    """Return the other views whose tuples are counted for one of `count` views.

    Only joins over ROWS windows need this: "the last 100 of b" depends on how many tuples of b had
    arrived.
    """
    return tuple(n for n in range(count) if n != number and axis == "rows")


def seen_column(number: int, other: int) -> str:
    """Return the column with the number of another view's tuples that arrived before a tuple."""
    return f"{HIDDEN}s{number}_{other}"


def arrival_column(number: int) -> str:
    """Return the name of the column with the arrival of a view's tuples."""
    return f"{HIDDEN}a{number}"


def timeline_of(streams: tuple[str, ...]) -> str:
    """Return the name of the timeline of some streams: all their tuples, in order of arrival.

    >>> timeline_of(("trades", "quotes"))
    'quotes__trades__time'
    """
    return "__".join((*sorted(streams), "time"))
