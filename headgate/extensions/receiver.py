"""The protocol of receivers: sinks to which the outbox delivers results at least once."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headgate.extensions.option_values import Options

if TYPE_CHECKING:
    import pyarrow as pa

ROW_KEY = "headgate_key"
"""The name of a row's key where a sink stores it: a column of a table, a header of a record."""


@dataclass(frozen=True, kw_only=True)
class SinkContext:
    """What a sink is created with.

    Args:
        query: the name of the query.
        format: the name by which the sink was chosen.
        options: those of the sink. Names and numbers were checked.
        schema: the pyarrow schema of the results.
        spark_schema: the same as a StructType of PySpark.
        session: a SparkSession of Headgate's own. Do not stop it.
        folder: the directory of the results, for formats of files.
        deliver: the function that `add_query` got, for sinks that take one.
    """

    query: str
    format: str
    options: Options
    schema: "pa.Schema"
    spark_schema: Any = None
    session: Any = None
    folder: str = ""
    deliver: Callable[[Any, str], object] | None = None


class Receiver(ABC):
    """A sink outside: results wait in the outbox, on disk, until `deliver` has accepted them.

    The constructor gets a `SinkContext`. It is called when the query is added, so that it can
    refuse the query, and again when the query starts. It must not connect: `open` does. The outbox
    of a query calls `open`, `deliver` and `close` from one thread, one result after the other.
    Methods may wait and may raise. A receiver that does either delays only its own results.
    """

    def open(self) -> None:
        """Connect. Called before the first delivery, and again after each failed one."""
        return  # many receivers need no connection

    @abstractmethod
    def deliver(self, rows: "pa.Table", key: str) -> None:
        """Accept a result, or raise; it is then delivered again later.

        To return means that the rows are safe: the outbox forgets them. A crash between the return
        and that moment delivers the same rows again, in the same order and with the same key, also
        in a new process. If rows must not count twice, store the key with them, and skip a key that
        is already stored. Results come in order: none is delivered before an earlier one.

        Args:
            rows: a pyarrow table with at least one row.
            key: identifies the result: QUERY/FIRST_TRAIN-LAST_TRAIN. `row_keys` returns a key for
                each row. Keys begin anew with a new state directory.
        """

    def close(self) -> None:
        """Disconnect. Called at the end of a run, and after each failed delivery."""
        return  # many receivers hold nothing


def row_keys(rows: "pa.Table", key: str) -> list[str]:
    """Return the key of every row of a result.

    >>> import pyarrow as pa
    >>> row_keys(pa.table({"a": [5, 6]}), "hot/0-3")
    ['hot/0-3/0', 'hot/0-3/1']
    """
    return [f"{key}/{row}" for row in range(rows.num_rows)]
