"""A stream of one train, and an executor that runs queries over it in either lane."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from headgate.model.network.network import Path as QueryPath
from headgate.model.plan import Lane
from headgate.model.query import Query, Sink
from headgate.model.stream import Stream
from headgate.runtime.members.query_paths import segments_of
from headgate.spark.execution.executor import Executor
from headgate.spark.journal.journal import Journal
from headgate.spark.jvm.lane.plan_runner import DriverLane
from headgate.spark.jvm.query.analysis import Analyst
from headgate.spark.jvm.session import own_session
from headgate.spark.log.byte_cache import ByteCache
from headgate.spark.log.stream_log import StreamLog
from headgate.spark.log.trains import Trains
from headgate.spark.output import Output
from headgate.spark.sinks.files.file_sink import FileSink

STREAMS = [Stream(name="readings", format="rate")]


class Rig:
    """A log of one train, and an executor that runs queries over it."""

    def __init__(
        self,
        spark: SparkSession,
        folder: Path,
        lane: Lane,
        ddl: str,
        rows: Sequence[dict[str, Any]],
    ) -> None:
        self.session = own_session(spark)
        self.count = len(rows)
        self.folder, self.journal = folder, Journal(folder)
        schema = self.session.createDataFrame([], ddl).schema
        cache = ByteCache(lambda: 1 << 20)
        self.log = StreamLog(folder, "readings", self.journal, schema, cache)
        self.analyst = Analyst(own_session(spark))
        self.analyst.add_stream("readings", schema)
        self.columns = {"readings": schema.names}
        arrived = [{**row, "_arrived_at_s": float(n)} for n, row in enumerate(rows)]
        new = self.log.stage(pa.Table.from_pylist(arrived, self.log.arrow_schema), 0)
        self.journal.add_trains([new])
        self.log.added(new)
        self.sinks: dict[str, FileSink] = {}
        self.driver = DriverLane(own_session(spark), folder)
        self.take_lane(lane)

    def take_lane(self, lane: Lane, paths: Sequence[QueryPath] = ()) -> None:
        """Use a lane from now on, with newly prepared code."""
        self.lane = lane
        self.executor = Executor(
            self.journal, {"readings": self.log}, self.sinks, lambda point: None,
            self.driver,
        )  # fmt: skip
        self.executor.arrangement.arrange(paths, lambda path: False)

    def paths(self, texts: Mapping[str, str], sink: str = "parquet") -> list[QueryPath]:
        paths = []
        for name, sql in texts.items():
            destination = Sink(format=sink, path=str(self.folder / name))
            query = Query(name=name, sql=sql, query_class="H", sink=destination)
            paths += segments_of(query, self.analyst, self.columns, STREAMS)[1]
            self.sinks[name] = FileSink(destination)
        self.executor.arrangement.arrange(paths, lambda path: False)
        return paths

    @property
    def trains(self) -> Trains:
        return self.log.trains(0, 1, self.count)

    def evaluate(self, paths: Sequence[QueryPath]) -> list[Output | Exception]:
        """Return the output of each path. If none fails, assert that the chosen lane ran them."""
        outputs, lane = self.executor.evaluate(self.session, paths, self.trains, self.lane)
        if all(isinstance(output, Output) for output in outputs):
            assert lane == self.lane
        return outputs

    def alone(self, sql: str) -> pa.Table:
        """Return what Spark answers to the query as it is written."""
        view = self.trains.frame(self.session).drop("_arrived_at_s")
        view.createOrReplaceTempView("readings")
        return self.session.sql(sql).toArrow()
