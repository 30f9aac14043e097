"""The logs and timelines of an engine: cleared away when they may be, and defined anew."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql.types import StructField, StructType, TimestampType

from headgate.model.stream import ARRIVED_AT, DERIVED, Stream
from headgate.spark.event_time.store import Store
from headgate.spark.journal.journal import Journal

SECOND = 1_000_000
SOURCE = Stream(name="s", format="parquet", event_time="ts", lateness_s=1, quiet_s=None)
VIEW = Stream(name="w", format=DERIVED)
TIMELINE = Stream(name="s__time", format=DERIVED, of=("s",))


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    journal = Journal(tmp_path)
    yield journal
    journal.close()


@pytest.fixture
def store(tmp_path: Path, journal: Journal) -> Store:
    schema = StructType([StructField("ts", TimestampType())])
    store = Store(
        tmp_path, journal, {"s": schema, "w": schema}, lambda: 1 << 20, lambda point: None
    )  # fmt: skip
    for stream in (SOURCE, VIEW, TIMELINE):
        store.open(stream, lambda *trains: None)
    return store


def test_files_of_opened_logs_stay_while_only_removed_logs_are_cleared_away(
    store: Store, tmp_path: Path
) -> None:
    stray = tmp_path / "log" / "s" / "000000000000.parquet"
    stray.touch()
    store.remove("w")
    store.sweep(opened=False)
    assert stray.exists()
    assert not (tmp_path / "log" / "w").exists()
    store.sweep()
    assert not stray.exists()


def test_a_stream_that_comes_back_has_the_lateness_of_its_new_definition(
    store: Store, journal: Journal
) -> None:
    log = store.log_again(replace(SOURCE, lateness_s=5))
    assert log is store.logs["s"]
    assert "s__time" not in store.timelines  # nobody reads it, so the next query opens it anew
    store.open(TIMELINE, lambda *trains: None)
    times = pa.array([10 * SECOND, 6 * SECOND], pa.timestamp("us", tz="UTC"))
    new = log.stage(pa.table({"ts": times, ARRIVED_AT: np.zeros(2)}), 0)
    journal.add_trains([new])
    log.added(new)
    timeline = store.timelines["s__time"]
    timeline.take("s", new.train)
    assert timeline.late(0, 1) == (0, 0)
    assert timeline.watermark(1) == 5 * SECOND
