"""The outbox below the engine: files in a folder, and a receiver."""

import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from headgate.spark.sinks.outbox import Outbox


def test_an_outbox_goes_on_when_an_older_one_has_delivered_a_file_of_the_same_query(
    tmp_path: Path,
) -> None:
    """A query is dropped while its receiver is slow, and comes back under the same name."""
    release, keys = threading.Event(), list[str]()

    def receive(table: pa.Table, key: str) -> None:
        keys.append(key)
        release.wait(10)

    def outbox() -> Outbox:
        return Outbox("q", "callback", tmp_path, receive, lambda point: None)

    for number in range(2):
        pq.write_table(pa.table({"a": [number]}), tmp_path / f"{number:012d}-{number:012d}.parquet")
    older, newer = outbox(), outbox()
    older.resume()
    older.close(patience_s=10)
    newer.resume()
    release.set()
    older.join()
    later = tmp_path / f"{5:012d}-{5:012d}.parquet"
    pq.write_table(pa.table({"a": [5]}), later)
    newer.hand_over(later)
    newer.close(patience_s=10)
    newer.join()
    assert list(tmp_path.glob("*.parquet")) == []
    assert set(keys) == {"q/0-0", "q/1-1", "q/5-5"}
