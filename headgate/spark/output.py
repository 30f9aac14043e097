"""The output of a query over some trains."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from headgate.model.arrays import Floats
from headgate.model.window_ends import Times


@dataclass(frozen=True)
class RowLetter:
    """A dead letter of a query: a tuple at which an expression failed, as one line of JSON.

    Args:
        position: the number of the tuple in its stream.
        row: its values by column, as JSON can have them.
    """

    stream: str
    position: int
    cause: str
    row: Mapping[str, Any]


@dataclass(frozen=True)
class Output:
    """Rows, and the arrival times of the tuples behind them.

    Args:
        closed: the number of windows that the rows belong to; None if no window closes.
        places: the position of each row in a derived stream: the number, among the tuples of the
            call, of the tuple that the row comes from. Of a query with windows it is an event time,
            such as the end of the row's window. None if unknown.
        due_at_s: for results of time windows, the instants at which they were due: the ends of the
            windows on the arrival clock or, for event time, the arrivals that closed them.
        idle_s: for results of unions, how long the tuples waited for other streams.
        letters: the tuples that were left out because an expression failed on them.
        shed: how many tuples of the call the query has dropped.
    """

    table: pa.Table
    arrived_at_s: Floats
    closed: int | None = None
    places: Times | None = None
    due_at_s: Floats | None = None
    idle_s: Floats | None = None
    letters: tuple[RowLetter, ...] = ()
    shed: int = 0

    @property
    def instants(self) -> int:
        """The number of outputs that counts for a query's selectivity."""
        return self.table.num_rows if self.closed is None else self.closed


def numbered(count: int) -> list[str]:
    """Return names for columns by position, since two columns may have the same name."""
    return [f"__hg_c{place}" for place in range(count)]


def quoted(name: str) -> str:
    """Return a name quoted for SQL, whatever characters it has.

    >>> print(quoted("a`b"))
    `a``b`
    """
    return "`" + name.replace("`", "``") + "`"
