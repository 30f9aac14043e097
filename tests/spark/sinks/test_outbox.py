"""The outbox below the engine: files in a folder, and a receiver."""

import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from headgate.extensions import Receiver
from headgate.spark.sinks.outbox import Outbox


class Slow(Receiver):
    """A receiver that returns only when it is released."""

    def __init__(self) -> None:
        self.release, self.keys = threading.Event(), list[str]()

    def deliver(self, rows: pa.Table, key: str) -> None:
        self.keys.append(key)
        self.release.wait(10)


def test_an_outbox_goes_on_when_an_older_one_has_delivered_a_file_of_the_same_query(
    tmp_path: Path,
) -> None:
    """A query is dropped while its receiver is slow, and comes back under the same name."""
    receiver = Slow()

    def outbox() -> Outbox:
        return Outbox("q", "callback", tmp_path, receiver, lambda point: None)

    for number in range(2):
        pq.write_table(pa.table({"a": [number]}), tmp_path / f"{number:012d}-{number:012d}.parquet")
    older, newer = outbox(), outbox()
    older.resume()
    older.close(patience_s=10)
    newer.resume()
    receiver.release.set()
    older.join()
    later = tmp_path / f"{5:012d}-{5:012d}.parquet"
    pq.write_table(pa.table({"a": [5]}), later)
    newer.hand_over(later)
    newer.close(patience_s=10)
    newer.join()
    assert list(tmp_path.glob("*.parquet")) == []
    assert set(receiver.keys) == {"q/0-0", "q/1-1", "q/5-5"}


class Logged(Receiver):
    """A receiver that logs when a delivery begins and ends.

    Args:
        waits_for: what a delivery waits for, for a moment.
    """

    def __init__(self, name: str, log: list[str], waits_for: threading.Event) -> None:
        self._name, self._log, self._waits_for = name, log, waits_for
        self.begun = threading.Event()

    def deliver(self, rows: pa.Table, key: str) -> None:
        self._log.append(f"{self._name} begins")
        self.begun.set()
        self._waits_for.wait(0.2)
        self._log.append(f"{self._name} ends")


def test_no_delivery_of_an_older_outbox_ends_after_one_of_the_outbox_that_follows_it(
    tmp_path: Path,
) -> None:
    """A query with a slow receiver is restarted: rows must not be updated by older results."""
    log: list[str] = []
    of_newer = Logged("newer", log, threading.Event())
    of_older = Logged("older", log, of_newer.begun)
    older = Outbox("q", "callback", tmp_path, of_older, lambda point: None)
    newer = Outbox("q", "callback", tmp_path, of_newer, lambda point: None)
    for number in range(2):
        pq.write_table(pa.table({"a": [number]}), tmp_path / f"{number:012d}-{number:012d}.parquet")
    older.resume()
    assert of_older.begun.wait(10)
    older.close(patience_s=10)
    newer.follow(older)
    newer.resume()
    newer.close(patience_s=10)
    older.join()
    newer.join()
    assert log == ["older begins", "older ends"] * 2
    assert list(tmp_path.glob("*.parquet")) == []
