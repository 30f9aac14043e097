"""A step that is in the journal is finished, now or by recovery, and never written again."""

import shutil
from pathlib import Path as File

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from crash import Crash, CrashAt
from pyspark.sql import SparkSession

from headgate.access import PRIVATE
from headgate.errors import ResultsHidden
from headgate.extensions import Options, SinkContext
from headgate.model.network.network import Path
from headgate.model.network.operator import Operator
from headgate.model.query import Query, Sink
from headgate.spark.engine.recovery import recover
from headgate.spark.execution.executor import Executor
from headgate.spark.journal.cursors import Cursors
from headgate.spark.journal.intents import Intents
from headgate.spark.journal.journal import Journal
from headgate.spark.jvm.lane.plan_runner import DriverLane
from headgate.spark.jvm.session import own_session
from headgate.spark.output import Output
from headgate.spark.sinks.callback import Callback
from headgate.spark.sinks.commit import Commits
from headgate.spark.sinks.files.file_sink import FileSink
from headgate.spark.sinks.outbox import Outbox
from headgate.spark.work import Work


def driver_of(spark: SparkSession) -> DriverLane:
    return DriverLane(own_session(spark))


class FullOnce:
    """A disk that is full once."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, point: str) -> None:
        if point == "result visible":
            self.times += 1
            if self.times == 1:
                raise OSError("no space left on device")


def test_no_result_is_delivered_before_an_earlier_one_that_a_failed_rename_hides(
    spark: SparkSession, tmp_path: File
) -> None:
    journal, keys = Journal(tmp_path / "state"), list[str]()
    query = Query(name="told", sql="x", query_class="H", sink=Sink(format="callback"))
    path = Path(query=query, stream="s", operators=(Operator(kind="project", expressions=("a",)),))
    Cursors(journal).remember(query.name, query.sql, path.stream)

    def outbox() -> Outbox:
        folder = tmp_path / "outbox"
        context = SinkContext(
            query="told", format="callback", options=Options(), schema=pa.schema([]),
            deliver=lambda table, key: keys.append(key),
        )  # fmt: skip
        return Outbox("told", "callback", folder, Callback(context), lambda point: None)

    first = outbox()
    executor = Executor(journal, {}, {"told": first}, FullOnce(), driver_of(spark))
    table = pa.table({"a": [1, 2, 3]})
    output = Output(table, table["a"].to_numpy().astype(float))
    assert executor.commits(Work((path,), 0, 1, 3), [(path, output)]) == {}
    assert list(executor.commits(Work((path,), 1, 2, 3), [(path, output)])) == ["told"]
    first.close()
    first.join()
    assert keys == []
    second = outbox()
    recover(journal, {"told": second})
    second.resume()
    second.close()
    second.join()
    assert keys == ["told/0-0"]
    assert Cursors(journal).counts() == {"told": (3, 3)}
    journal.close()


def _paths(folder: File, *names: str) -> tuple[Path, ...]:
    return tuple(
        Path(
            query=Query(name=name, sql="x", query_class="H", sink=Sink(path=str(folder / name))),
            stream="s",
            operators=(Operator(kind="project", expressions=("a",)),),
        )
        for name in names
    )


class Away:
    """A directory that is moved away once a step is in the journal, until `restore` is called."""

    def __init__(self, folder: File) -> None:
        self._folder, self._aside = folder, folder.with_name("aside")
        self._restored = False

    def __call__(self, point: str) -> None:
        if point == "step journalled" and self._folder.exists() and not self._restored:
            self._folder.rename(self._aside)

    def restore(self) -> None:
        self._aside.rename(self._folder)
        self._restored = True


def test_a_rename_that_fails_after_the_promise_is_left_to_recovery(
    spark: SparkSession, tmp_path: File, caplog: pytest.LogCaptureFixture
) -> None:
    journal = Journal(tmp_path / "state")
    paths = _paths(tmp_path, "first", "second")
    sinks = {path.query.name: FileSink(path.query.sink) for path in paths}
    for path in paths:
        Cursors(journal).remember(path.query.name, path.query.sql, path.stream)
    table = pa.table({"a": [1, 2, 3]})
    output = Output(table, table["a"].to_numpy().astype(float))
    away = Away(tmp_path / "first")
    executor = Executor(journal, {}, sinks, away, driver_of(spark))
    executor.commits(Work(paths, 0, 1, 3), [(path, output) for path in paths])
    assert "results stay hidden, and are tried again" in caplog.text
    # Only the result whose directory is away is hidden; both are committed.
    assert len(list((tmp_path / "second").glob("*.parquet"))) == 1
    assert [query for _, query in Intents(journal).unconfirmed()] == ["first"]
    assert Cursors(journal).counts() == {"first": (3, 3), "second": (3, 3)}
    away.restore()
    assert recover(journal, sinks) == (1, [])
    assert Intents(journal).unconfirmed() == {}
    for name in ("first", "second"):
        (file,) = (tmp_path / name).glob("*.parquet")
        assert pq.read_table(file) == table
    journal.close()


def test_a_result_that_is_gone_or_cannot_be_renamed_concerns_its_query_alone(
    spark: SparkSession, tmp_path: File, caplog: pytest.LogCaptureFixture
) -> None:
    journal = Journal(tmp_path / "state")
    paths = _paths(tmp_path, "moved", "removed", "kept", "away")
    sinks = {path.query.name: FileSink(path.query.sink) for path in paths}
    for path in paths:
        Cursors(journal).remember(path.query.name, path.query.sql, path.stream)
    table = pa.table({"a": [1, 2, 3]})
    output = Output(table, table["a"].to_numpy().astype(float))
    commits = Commits(journal, sinks, CrashAt("result visible", 0))
    with pytest.raises(Crash):
        commits(Work(paths, 0, 1, 3), [(path, output) for path in paths])
    (result,) = (tmp_path / "moved").glob("*.parquet")
    result.rename(tmp_path / "consumed")
    shutil.rmtree(tmp_path / "removed")
    again = {path.query.name: FileSink(path.query.sink) for path in paths}
    for sink in again.values():
        sink.open_to(PRIVATE)
    (tmp_path / "away").rename(tmp_path / "aside")
    recovered, late = recover(journal, again)
    assert recovered == 1
    assert pq.read_table(tmp_path / "kept" / result.name) == table
    for name in ("moved", "removed"):
        assert f"query '{name}': its result {tmp_path / name / result.name} is gone" in caplog.text
    assert [query for _, query in Intents(journal).unconfirmed()] == ["away"]
    commits = Commits(journal, again, lambda point: None)
    commits.renames.adopt(late)
    refused = commits(Work(paths, 1, 2, 3), [(path, output) for path in paths])
    assert [*refused] == ["away"]
    assert [query for _, query in Intents(journal).unconfirmed()] == ["away"]
    (tmp_path / "aside").rename(tmp_path / "away")
    commits.renames.try_again()
    assert pq.read_table(tmp_path / "away" / result.name) == table
    assert commits(Work(paths[-1:], 1, 2, 3), [(paths[-1], output)]) == {}
    shutil.rmtree(tmp_path / "moved")  # during the run: it is made again
    assert commits(Work(paths, 2, 3, 3), [(path, output) for path in paths]) == {}
    assert Intents(journal).unconfirmed() == {}
    assert len(list((tmp_path / "moved").glob("*.parquet"))) == 1
    journal.close()


def test_a_rename_that_fails_is_tried_again_and_the_query_waits_for_it(
    spark: SparkSession, tmp_path: File
) -> None:
    journal = Journal(tmp_path / "state")
    (path,) = _paths(tmp_path, "first")
    sink = FileSink(path.query.sink)
    Cursors(journal).remember(path.query.name, path.query.sql, path.stream)
    visible_files: list[str] = []
    sink.hand_over = lambda file: visible_files.append(file.name)  # type: ignore[method-assign]
    away = Away(tmp_path / "first")
    executor = Executor(journal, {}, {"first": sink}, away, driver_of(spark))
    table = pa.table({"a": [1, 2, 3]})
    output = Output(table, table["a"].to_numpy().astype(float))
    assert executor.commits(Work((path,), 0, 1, 3), [(path, output)]) == {}
    for _ in range(2):
        refused = executor.commits(Work((path,), 1, 2, 3), [(path, output)])
        assert isinstance(refused["first"], ResultsHidden)
        assert str(tmp_path / "first") in str(refused["first"])
        executor.commits.renames.try_again()
    assert not (tmp_path / "first").exists()
    assert visible_files == []
    assert Cursors(journal).counts() == {"first": (3, 3)}
    away.restore()
    executor.commits.renames.try_again()
    assert visible_files == ["000000000000-000000000000.parquet"]
    assert Intents(journal).unconfirmed() == {}
    assert executor.commits(Work((path,), 1, 2, 3), [(path, output)]) == {}
    assert len(visible_files) == 2
    assert Cursors(journal).counts() == {"first": (6, 6)}
    journal.close()


def test_a_dropped_query_leaves_no_promise(
    spark: SparkSession, tmp_path: File, caplog: pytest.LogCaptureFixture
) -> None:
    journal = Journal(tmp_path / "state")
    (path,) = _paths(tmp_path, "first")
    Cursors(journal).remember(path.query.name, path.query.sql, path.stream)
    sinks = {"first": FileSink(path.query.sink)}
    away = Away(tmp_path / "first")
    executor = Executor(journal, {}, sinks, away, driver_of(spark))
    table = pa.table({"a": [1]})
    output = Output(table, table["a"].to_numpy().astype(float))
    executor.commits(Work((path,), 0, 1, 1), [(path, output)])
    executor.commits.renames.forget("first")
    Cursors(journal).forget("first")
    assert "its last result was never made visible" in caplog.text
    assert Intents(journal).unconfirmed() == {}
    journal.close()
