"""The outbox: results for sinks outside our file system wait here until they have arrived."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from headgate.access import PRIVATE
from headgate.errors import SinkBehind
from headgate.extensions import Receiver
from headgate.model.query import Sink
from headgate.spark.jvm.errors import cause_of
from headgate.spark.log.files import size_of
from headgate.spark.sinks.files.file_sink import FileSink

log = logging.getLogger("headgate.spark")

PAUSE_S, LONGEST_PAUSE_S = 0.2, 30.0
"""A failed delivery is retried after the first, then after twice that, up to the second."""

PATIENCE_S = 1.0
"""How long a step waits for its results to arrive, unless some are late already."""

LAST_S = 5.0
"""How long `close` waits for what is on its way."""


class Outbox(FileSink):
    """A sink that delivers a query's results at least once, in order, from its own thread.

    A result is a Parquet file in a folder, committed like any other: whole, and once. Then it is
    delivered, and removed once it has arrived. A crash in between delivers it again, with the same
    rows and the same key. A receiver that is away delays only its own results.

    Args:
        query: its name.
        format: of its sink.
        folder: where its results wait.
        receiver: accepts results, or raises as long as it cannot.
        reached: called at every point where a crash must lose nothing; a test raises there.
        may_wait: returns True if there is room for more waiting results.
        version: of the query; the keys of its results carry it.
    """

    def __init__(
        self,
        query: str,
        format: str,
        folder: Path,
        receiver: Receiver,
        reached: Callable[[str], None],
        may_wait: Callable[[], bool] = lambda: True,
        version: int = 1,
    ) -> None:
        super().__init__(Sink(path=str(folder)))
        self.open_to(PRIVATE)
        self.receiver, self._is_open = receiver, False
        self._query, self._format, self._reached = query, format, reached
        self._version = version
        self._waiting: deque[tuple[Path, int]] = deque()
        self._waiting_bytes, self._may_wait = 0, may_wait
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._before: Outbox | None = None
        self._late = self._closing = False
        self._give_up_at_s = 0.0

    @property
    def waiting_bytes(self) -> int:
        return self._waiting_bytes

    def names(self, first_train: int, end_train: int) -> tuple[Path, Path]:
        temporary, final = super().names(first_train, end_train)
        if self._version > 1:
            final = final.with_name(f"v{self._version:06d}-{final.name}")
        return temporary, final

    def write(self, table: pa.Table, file: Path) -> None:
        if self._late and not self._may_wait():
            raise SinkBehind(format=self._format, waiting_bytes=self.waiting_bytes)
        super().write(table, file)

    def resume(self) -> None:
        self._take(sorted(self.folder.glob("*.parquet")))

    def follow(self, before: FileSink) -> None:
        """Deliver nothing until an older outbox of the query has ended, or is abandoned.

        Else a result of the older one might arrive after a later one.
        """
        if isinstance(before, Outbox):
            self._before = before

    def hand_over(self, file: Path) -> None:
        if file.exists():  # else somebody has removed it, which the rename has reported
            self._take([file])

    def settle(self) -> None:
        with self._changed:
            if not self._late:
                self._changed.wait_for(lambda: self._late or not self._waiting, PATIENCE_S)
                self._late = bool(self._waiting)

    def close(self, patience_s: float = LAST_S) -> None:
        with self._changed:
            self._closing = True
            self._give_up_at_s = time.monotonic() + patience_s
            self._changed.notify_all()

    def join(self) -> None:
        self._wait()
        if self._waiting:
            log.warning(
                "query '%s': %s results have not arrived; the next start delivers them",
                self._query, len(self._waiting),
            )  # fmt: skip

    def _wait(self) -> None:
        if self._thread is not None:
            self._thread.join(max(0.0, self._give_up_at_s - time.monotonic()))

    def _take(self, files: Sequence[Path]) -> None:
        sizes = [size_of(file) for file in files]
        with self._changed:
            self._waiting.extend(zip(files, sizes, strict=True))
            self._waiting_bytes += sum(sizes)
            self._changed.notify_all()
            if self._waiting and self._thread is None and not self._closing:
                name = f"headgate-outbox-{self._query}"
                self._thread = threading.Thread(target=self._run, name=name, daemon=True)
                self._thread.start()

    def _run(self) -> None:
        if self._before is not None:
            self._before._wait()
            self._before = None
        self._deliver_all()
        self._disconnect()

    def _deliver_all(self) -> None:
        failures = 0
        while (file := self._next()) is not None:
            try:
                self._deliver(file)
            except Exception as error:
                if not failures:
                    log.warning(
                        "query '%s': its results wait in the outbox, the %s sink does not take"
                        " them: %s",
                        self._query, self._format, cause_of(error),
                    )  # fmt: skip
                failures += 1
                self._disconnect()
                if not self._pause(min(PAUSE_S * 2 ** min(failures - 1, 10), LONGEST_PAUSE_S)):
                    return
                continue
            if failures:
                log.warning("query '%s': its results arrive again", self._query)
                failures = 0
            with self._changed:
                self._waiting_bytes -= self._waiting.popleft()[1]
                self._late = self._late and bool(self._waiting)
                self._changed.notify_all()

    def _disconnect(self) -> None:
        """Close the receiver, if it is open; the next delivery opens it again."""
        if not self._is_open:
            return
        self._is_open = False
        try:
            self.receiver.close()
        except Exception as error:  # whatever a receiver raises: its results are safe here
            log.warning(
                "query '%s': closing its %s sink failed: %s",
                self._query, self._format, cause_of(error),
            )  # fmt: skip

    def _next(self) -> Path | None:
        """Wait for a result and return its file; None at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closing)
            late = self._closing and time.monotonic() > self._give_up_at_s
            return self._waiting[0][0] if self._waiting and not late else None

    def _pause(self, seconds: float) -> bool:
        """Wait before another attempt; return False if the sink is closing and makes none."""
        with self._changed:
            if self._closing:
                return False
            self._late = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._closing, seconds)
            return True

    def _deliver(self, file: Path) -> None:
        try:
            with pq.ParquetFile(file) as staged:
                table = staged.read()
        except FileNotFoundError:
            return  # an older outbox of the same query, which is closing, has delivered it
        self._reached("delivery begun")
        *version, first, last = (int(part.lstrip("v")) for part in file.stem.split("-"))
        query = f"{self._query}.v{version[0]}" if version else self._query
        if not self._is_open:
            self.receiver.open()
            self._is_open = True
        self.receiver.deliver(table, f"{query}/{first}-{last}")
        self._reached("result delivered")
        file.unlink(missing_ok=True)
