"""A step that the journal has promised is finished by recovery, never written again."""

from pathlib import Path as File

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from headgate.model.network import Path
from headgate.model.operator import Operator
from headgate.model.query import Query, Sink
from headgate.spark.executor import Executor, Work
from headgate.spark.group import Output
from headgate.spark.journal import Journal
from headgate.spark.outbox import Outbox
from headgate.spark.recovery import recover
from headgate.spark.sinks import FileSink


def _full_disk(point: str) -> None:
    if point == "result visible":
        raise OSError("no space left on device")


class Gone:
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
    journal.remember_query(query.name, query.sql, path.stream)

    def outbox() -> Outbox:
        folder = tmp_path / "outbox"
        return Outbox(
            "told", "callback", folder, lambda table, key: keys.append(key), lambda point: None
        )

    first = outbox()
    executor = Executor(spark, journal, {}, {"told": first}, Gone())
    table = pa.table({"a": [1, 2, 3]})
    output = Output(table, table["a"].to_numpy().astype(float))
    for train in range(2):
        executor.commit(Work((path,), train, train + 1, 3), [(path, output)])
    first.close()
    first.join()
    assert keys == []
    second = outbox()
    recover(journal, [second])
    second.resume()
    second.close()
    second.join()
    assert keys == ["told/0-0", "told/1-1"]
    journal.close()


def test_a_rename_that_fails_after_the_promise_is_left_to_recovery(
    spark: SparkSession, tmp_path: File, caplog: pytest.LogCaptureFixture
) -> None:
    journal = Journal(tmp_path / "state")
    paths = tuple(
        Path(
            query=Query(name=name, sql="x", query_class="H", sink=Sink(path=str(tmp_path / name))),
            stream="s",
            operators=(Operator(kind="project", expressions=("a",)),),
        )
        for name in ("first", "second")
    )
    sinks = {path.query.name: FileSink(path.query.sink) for path in paths}
    for path in paths:
        journal.remember_query(path.query.name, path.query.sql, path.stream)
    table = pa.table({"a": [1, 2, 3]})
    output = Output(table, table["a"].to_numpy().astype(float))
    executor = Executor(spark, journal, {}, sinks, _full_disk)
    executor.commit(Work(paths, 0, 1, 3), [(path, output) for path in paths])
    assert "results stay hidden until the next start" in caplog.text
    assert not list((tmp_path / "second").glob("*.parquet"))
    assert journal.counts() == {"first": (3, 3), "second": (3, 3)}
    assert recover(journal, sinks.values()) == 1
    assert journal.unconfirmed() == []
    for name in ("first", "second"):
        (file,) = (tmp_path / name).glob("*.parquet")
        assert pq.read_table(file) == table
    journal.close()
