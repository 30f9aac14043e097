"""Rows pass between Python and the JVM as files: in shared memory, or beside the log."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from headgate.spark.jvm.lane import row_files
from headgate.spark.jvm.lane.plan_runner import DriverLane, PlanRunner
from headgate.spark.jvm.query.plans import Plans

pytestmark = pytest.mark.spark

ARROW = pa.schema([("v", pa.int64()), ("s", pa.string())])


def rows_of(size: int) -> pa.Table:
    return pa.table({"v": range(size), "s": [f"k{number % 17}" for number in range(size)]}, ARROW)


@pytest.fixture(scope="module", autouse=True)
def relations(session: SparkSession) -> None:
    for name in ("t", "u"):
        Plans(session).relation(name, from_arrow_schema(ARROW)).createOrReplaceTempView(name)


def prepared(session: SparkSession, driver: DriverLane, text: str) -> PlanRunner:
    return driver.prepare(Plans(session).of(session.sql(text)))


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield a real file system of 64 kB in place of shared memory."""
    folder = tmp_path / "shm"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    if os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small file system is not permitted here")
    monkeypatch.setattr(row_files, "SHARED_MEMORY", folder)
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)  # this process has a folder in it


def files_in(*folders: Path) -> list[Path]:
    return [path for folder in folders for path in folder.rglob("*") if not path.is_dir()]


@pytest.mark.parametrize(
    ("text", "size"),
    [("SELECT v, s FROM t", 20_000), ("SELECT repeat(s, 500) AS long FROM t", 200)],
    ids=["input", "output"],
)
def test_rows_pass_by_the_state_folder_where_shared_memory_is_full(
    session: SparkSession, tiny: Path, tmp_path: Path, text: str, size: int
) -> None:
    state = tmp_path / "state"
    state.mkdir()
    driver = DriverLane(session, state)
    runner, table = prepared(session, driver, text), rows_of(size)
    assert runner({"t": table}).num_rows == size
    few = table.slice(0, 5)
    assert runner({"t": few}).num_rows == 5
    assert files_in(tiny, state) == []


def test_where_both_are_full_the_call_fails_and_leaves_nothing(
    session: SparkSession, tiny: Path
) -> None:
    driver = DriverLane(session, tiny)
    runner = prepared(session, driver, "SELECT v, s FROM t")
    with pytest.raises(OSError, match="No space left on device"):
        runner({"t": rows_of(20_000)})
    assert files_in(tiny) == []
    assert runner({"t": rows_of(20)}).num_rows == 20


def test_files_of_rows_are_for_this_user_alone_and_go_with_the_call(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_files, "SHARED_MEMORY", tmp_path / "shm")
    (tmp_path / "shm").mkdir()
    driver = DriverLane(session, tmp_path)
    modes: list[int] = []
    read_rows = row_files.read_rows

    def record_modes(name: str, schema: pa.Schema) -> pa.Table:
        files = files_in(tmp_path / "shm")
        assert Path(name) in files
        assert Path(name).parent.stat().st_mode & 0o777 == 0o700
        modes.extend(file.stat().st_mode & 0o777 for file in files)
        return read_rows(name, schema)

    monkeypatch.setattr("headgate.spark.jvm.lane.plan_runner.read_rows", record_modes)
    umask = os.umask(0)
    try:
        prepared(session, driver, "SELECT v FROM t WHERE v = (SELECT max(v) FROM u)")(
            {"t": rows_of(5), "u": rows_of(5)}
        )
    finally:
        os.umask(umask)
    assert modes == [0o600] * 3
    assert files_in(tmp_path / "shm") == []
