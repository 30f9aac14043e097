"""A reader of rows from a user's iterator, which may block until it has its next row."""

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

Row = Mapping[str, Any]

PATIENCE_S = 0.01
"""How long `take` waits for more rows than have been read."""


class RowReader:
    """Reads ahead in a thread of its own, so that no other thread waits for a blocked iterator.

    Args:
        rows: returns the iterator.
        most: the most rows that are read ahead, and so taken at once.
    """

    def __init__(self, rows: Callable[[], Iterable[Row]], most: int) -> None:
        self._open, self._most = rows, most
        self._rows: list[Row] = []
        self._changed = threading.Condition()
        self._ended = self._closed = self._was_polled = False
        self._error: BaseException | None = None
        threading.Thread(target=self._read, name="headgate-rows", daemon=True).start()

    def take(self) -> list[Row]:
        """Return the rows that have been read; after the last, raise the iterator's error."""
        with self._changed:
            patience_s = PATIENCE_S if self._rows or not self._was_polled else 0.0
            self._was_polled = True
            self._changed.wait_for(lambda: self._ended or len(self._rows) >= self._most, patience_s)
            if self._error is not None and not self._rows:
                raise self._error
            rows, self._rows = self._rows, []
            self._changed.notify_all()
            return rows

    def close(self) -> None:
        """Stop reading; the thread ends when the iterator returns its next row."""
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
        """Add a row once there is room; return True if another one is wanted."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or len(self._rows) < self._most)
            self._rows.append(row)
            if len(self._rows) >= self._most:
                self._changed.notify_all()
            return not self._closed
