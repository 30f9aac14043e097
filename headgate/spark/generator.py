"""The built-in generator as a Spark streaming source: `format: headgate`."""

import time
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from headgate.workloads.forest import SCHEMA, arrivals_of, sensor_readings


class Generator(DataSource):
    """Sensor readings of a forest, evenly spaced with bursts; tuple i is the same in every run.

    Options: rate_per_s, burst_factor, burst_every_s, burst_for_s, seed, tuples (the last one).
    """

    @classmethod
    def name(cls) -> str:
        return "headgate"

    def schema(self) -> str:
        return SCHEMA

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        return GeneratorReader(dict(self.options))


class Range(InputPartition):
    """Tuples first, ..., end − 1, the stream's zero being at `start_us`."""

    def __init__(self, first: int, end: int, start_us: int) -> None:
        super().__init__((first, end, start_us))
        self.first, self.end, self.start_us = first, end, start_us


class GeneratorReader(DataSourceStreamReader):
    """Offsets are {tuple, start_us}.

    The first tuple goes alone, and the clock starts when it has been taken: the first trigger
    takes seconds, and they would come out as a burst. For the same reason the stream goes on
    after a restart with the next tuple as if no time had passed.
    """

    def __init__(self, options: dict[str, str]) -> None:
        self._seed = int(options.get("seed", "0"))
        self._last = int(options.get("tuples", str(2**60)))
        self._arrivals = arrivals_of(options)
        self._start_us: int | None = None

    def initialOffset(self) -> dict[str, int]:
        return {"tuple": 0, "start_us": 0}

    def latestOffset(self, start: dict[str, int], limit: object) -> dict[str, int]:
        if start["tuple"] == 0:
            return {"tuple": 1, "start_us": int(time.time() * 1e6)}
        if self._start_us is None:
            passed_s = float(self._arrivals.times_s(start["tuple"], start["tuple"] + 1)[0])
            self._start_us = int((time.time() - passed_s) * 1e6)
        count = self._arrivals.count_by(time.time() - self._start_us / 1e6)
        count = max(start["tuple"], min(count, self._last))
        if count == start["tuple"]:
            return start
        return {"tuple": count, "start_us": self._start_us}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        if start["tuple"] == end["tuple"]:
            return []
        return [Range(start["tuple"], end["tuple"], end["start_us"])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Range)
        times_s = self._arrivals.times_s(partition.first, partition.end) + partition.start_us / 1e6
        yield sensor_readings(self._seed, partition.first, times_s)
