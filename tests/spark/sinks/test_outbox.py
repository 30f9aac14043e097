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
