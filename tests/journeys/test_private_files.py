"""Who may read the files of a run: its owner, and others only as the settings say."""

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate import Headgate, Query, Sink, Stream
from headgate.access import access_of
from headgate.errors import ConfigRefused

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SCHEMA = "n INT, ts TIMESTAMP"
LINES = [
    '{"n": 1, "ts": "2024-01-01T00:00:50Z"}',
    '{"n": 2, "ts": "2024-01-01T00:00:00Z"}',
    "not JSON",
    '{"n": 3, "ts": "2024-01-01T00:01:50Z"}',
]


@pytest.fixture
def any_umask() -> Iterator[None]:
    umask = os.umask(0)
    yield
    os.umask(umask)


def modes_in(folder: Path) -> dict[Path, int]:
    """Return the permissions of a folder and all in it."""
    paths = [folder, *folder.rglob("*")]
    return {path: path.stat().st_mode & 0o777 for path in paths}


def run(spark: SparkSession, folder: Path, name: str, **settings: str) -> None:
    """Read a new file: with a late tuple, a dead letter, two results and one that must wait."""
    source = folder / "source"
    source.mkdir(exist_ok=True)
    (source / name).write_text("\n".join(LINES) + "\n")
    gate = Headgate(
        spark, state=folder / "state", rehearsal_s=0, record=True, share="none", **settings
    )
    gate.add_stream(
        Stream(
            name="s", format="json", options={"path": str(source)}, schema=SCHEMA,
            event_time="ts", quiet_s=0.5, late_path=str(folder / "late"), trigger_s=0.01,
        )
    )  # fmt: skip
    windowed = "SELECT count(*) AS n FROM s [RANGE 10 SECONDS]"
    gate.add_query(Query(name="window", sql=windowed, query_class="default"))
    sink = Sink(format="json", path=str(folder / "elsewhere"))
    gate.add_query(Query(name="rows", sql="SELECT n FROM s", query_class="default", sink=sink))
    waits = Query(
        name="waits", sql="SELECT n FROM s", query_class="default", sink=Sink(format="callback")
    )
    gate.add_query(waits, deliver=refuse_delivery)
    gate.start()
    until(lambda: list((folder / "late").glob("*.parquet")))
    offered = 3 * len(list(source.iterdir()))
    until(lambda: all(tuples == offered for tuples, _ in gate.totals().values()))
    gate.stop()


def refuse_delivery(rows: object, key: str) -> None:
    raise ConnectionError("away")


def until(holds: Callable[[], object]) -> None:
    for _ in range(600):
        if holds():
            return
        threading.Event().wait(0.05)
    raise AssertionError("the condition did not become true")


def test_files_with_rows_are_for_their_owner_unless_the_settings_say_otherwise(
    spark: SparkSession, tmp_path: Path, any_umask: None
) -> None:
    run(spark, tmp_path, "first.json")
    state, results, late = (tmp_path / name for name in ("state", "elsewhere", "late"))
    modes = modes_in(state) | modes_in(results) | modes_in(late)
    names = "journal.db dead-letters outbox log results recording statistics.json"
    assert {state / name for name in names.split()} <= modes.keys()
    assert any(path.suffix == ".json" for path in modes_in(results))
    modes.pop(state / "lock")  # has nothing in it
    assert {path: oct(mode) for path, mode in modes.items() if mode & 0o077} == {}

    other = 4321 if os.geteuid() == 0 else os.getegid()
    run(spark, tmp_path, "second.json", file_mode="0640", group=str(other))
    for folder in (state / "log", state / "results"):
        for path, mode in modes_in(folder).items():
            assert mode == (0o750 if path.is_dir() else 0o640)
            assert path.stat().st_gid == other
    results_modes = [file.stat().st_mode & 0o777 for file in results.glob("*.json")]
    assert sorted(results_modes) == [0o600, 0o640]  # a visible file stays as it is
    for name in ("dead-letters", "outbox", "recording"):
        assert not any(mode & 0o077 for mode in modes_in(state / name).values())


def test_a_group_that_cannot_be_given_is_refused() -> None:
    with pytest.raises(ConfigRefused, match="group is 'nobodys', but must be a group of this"):
        access_of("0640", "nobodys")
