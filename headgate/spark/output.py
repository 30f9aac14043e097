"""What a query made of trains."""

from dataclasses import dataclass

import pyarrow as pa

from headgate.model.arrays import Floats
from headgate.model.window_ends import Times


@dataclass(frozen=True)
class Output:
    """Rows, and when the tuples behind them arrived.

    Args:
        closed: how many windows they are of; None where there is no window that closes.
        places: where each row belongs, for a stream that is made of them (`derived`): the number of
            the tuple that it comes from among those of the call; of windows, their ends and so on.
            None where that is not known.
    """

    table: pa.Table
    arrived_at_s: Floats
    closed: int | None = None
    places: Times | None = None

    @property
    def instants(self) -> int:
        """What counts as output for a query's selectivity."""
        return self.table.num_rows if self.closed is None else self.closed


def numbered(count: int) -> list[str]:
    """Return names for columns by their places, as two may have the same name."""
    return [f"__hg_c{place}" for place in range(count)]


def quoted(name: str) -> str:
    """Return a name as SQL takes it, whatever letters it has.

    >>> print(quoted("a`b"))
    `a``b`
    """
    return "`" + name.replace("`", "``") + "`"
