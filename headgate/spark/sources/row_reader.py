"""Takes rows out of an iterator of the user's, who may let it wait for the next one."""

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

Row = Mapping[str, Any]

PATIENCE_S = 0.01
"""How long rows that are there wait for more of their kind."""


class RowReader:
    """Reads ahead in a thread of its own, so that nobody else waits for an iterator that does.

    Args:
        rows: gives the iterator.
        most: so many rows are read ahead, and taken at once, at the most.
    """

    def __init__(self, rows: Callable[[], Iterable[Row]], most: int) -> None:
        self._open, self._most = rows, most
        self._rows: list[Row] = []
        self._changed = threading.Condition()
        self._ended = self._closed = self._asked = False
        self._error: BaseException | None = None
        threading.Thread(target=self._read, name="headgate-rows", daemon=True).start()

    def take(self) -> list[Row]:
        """Gives the rows that are there; raises what the iterator has raised behind them."""
        with self._changed:
            patience_s = PATIENCE_S if self._rows or not self._asked else 0.0
            self._asked = True
            self._changed.wait_for(lambda: self._ended or len(self._rows) >= self._most, patience_s)
            if self._error is not None and not self._rows:
                raise self._error
            taken, self._rows = self._rows, []
            self._changed.notify_all()
            return taken

    def close(self) -> None:
        """Takes no more; the thread ends when the iterator gives its next row."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _read(self) -> None:
        error: BaseException | None = None
        try:
            for row in self._open():
                if not self._put(row):
                    return
        except BaseException as raised:
            error = raised
        with self._changed:
            self._ended, self._error = True, error
            self._changed.notify_all()

    def _put(self, row: Row) -> bool:
        """Keeps a row, once there is room; tells whether another is wanted."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or len(self._rows) < self._most)
            self._rows.append(row)
            if len(self._rows) >= self._most:
                self._changed.notify_all()
            return not self._closed
