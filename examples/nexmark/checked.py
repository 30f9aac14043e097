"""Nexmark from end to end: write the streams, run the queries over them, check every answer."""

import os
import re
import shutil
import time
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from answers import answers
from headgate import Headgate
from headgate.config import Pipeline, read_pipeline
from headgate.runtime.live.load import load
from headgate.workloads.testbeds.nexmark import SCHEMAS, Nexmark

PIPELINE = Path(__file__).with_name("nexmark.yaml")
PLACE = "state/nexmark"
"""The folder of the streams and the state in the pipeline file."""

MIDNIGHT_S = 1_704_067_200.0  # 2024 begins
LATENESS_US = 4_000_000


@dataclass(frozen=True)
class Outcome:
    """The output of a query: how many rows it has, and how many are missing or wrong."""

    query: str
    query_class: str
    rows: int
    missing: int
    wrong: int

    @property
    def equal(self) -> bool:
        return not (self.missing or self.wrong)


@dataclass(frozen=True)
class Checked:
    """A run: the outcome of each query, and the errors on the way."""

    outcomes: tuple[Outcome, ...]
    errors: tuple[str, ...]


def site(events: int, rate_per_s: float, seed: int) -> Nexmark:
    """Return streams for that many events; a new day begins in the middle of them."""
    start_s = MIDNIGHT_S - round(0.6 * events / rate_per_s)
    return Nexmark(seed=seed, rate_per_s=rate_per_s, start_s=start_s)


def pipeline_at(folder: Path, queries: Collection[str] = ()) -> Pipeline:
    """Return the pipeline with streams and state in a folder, with some or all of its queries."""
    folder.mkdir(parents=True, exist_ok=True)
    copy = folder / PIPELINE.name
    copy.write_text(PIPELINE.read_text().replace(PLACE, str(folder)))
    pipeline = read_pipeline(copy)
    chosen = {name: query for name, query in pipeline.queries.items() if name in queries}
    return pipeline.model_copy(update={"queries": chosen}) if queries else pipeline


def prepare(folder: Path) -> None:
    """Create empty folders for the streams, and the table that q13 joins with."""
    for name in ("run", "source"):
        shutil.rmtree(folder / name, ignore_errors=True)
    for stream in SCHEMAS:
        (folder / "source" / stream).mkdir(parents=True)
    keys = np.arange(100)
    side = pa.table({"key": keys, "value": [f"value-{key * key % 97}" for key in keys.tolist()]})
    pq.write_table(side, folder / "source" / "side.parquet")


def write_step(folder: Path, nexmark: Nexmark, step: int, first: int, count: int) -> None:
    """Write the events of one step: a file for each stream, which appears as a whole."""
    for stream, table in nexmark.events(first, count).items():
        hidden = folder / "source" / f"{stream}.parquet"
        pq.write_table(table, hidden)
        os.replace(hidden, folder / "source" / stream / f"{step:05d}.parquet")


def run(
    spark: SparkSession,
    folder: Path,
    *,
    events: int,
    steps: int = 10,
    rate_per_s: float = 20.0,
    seed: int = 1,
    queries: Collection[str] = (),
    pause_s: float = 0.2,
    timeout_s: float = 600.0,
) -> Checked:
    """Run queries while events come in, and compare their output with the expected one.

    Args:
        steps: how many files a stream has; they come one after the other.
        pause_s: the time from one file to the next.
    """
    prepare(folder)
    pipeline, nexmark = pipeline_at(folder, queries), site(events, rate_per_s, seed)
    gate = load(pipeline, spark=spark)
    try:
        gate.start()
        for step in range(steps):
            first, end = events * step // steps, events * (step + 1) // steps
            write_step(folder, nexmark, step, first, end - first)
            gate.wait(pause_s)
        behind = _consume(gate, folder, pipeline, timeout_s)
        errors = gate.report().errors
    finally:
        gate.stop()
    if behind and not errors:
        errors = (f"after {timeout_s:g} s {', '.join(behind)} had not taken in everything",)
    return Checked(check(spark, folder, pipeline), errors)


def _consume(gate: Headgate, folder: Path, pipeline: Pipeline, timeout_s: float) -> list[str]:
    """Wait until every query has consumed all tuples of its streams, or one has failed.

    Return the queries that have not.
    """
    offered = {stream: _rows(folder, stream).num_rows for stream in SCHEMAS}
    due = {
        name: sum(offered[stream] for stream in _streams_of(query.sql))
        for name, query in pipeline.queries.items()
    }
    ends_at_s = time.monotonic() + timeout_s
    while True:
        totals = gate.totals()
        behind = [name for name, tuples in due.items() if totals[name][0] < tuples]
        if not behind or gate.report().errors or time.monotonic() > ends_at_s:
            return behind
        gate.wait(0.1)


def check(spark: SparkSession, folder: Path, pipeline: Pipeline) -> tuple[Outcome, ...]:
    """Compare the rows in the result files with Spark's answer over the files of the streams."""
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    marks = {}
    for stream in SCHEMAS:
        rows = _rows(folder, stream)
        timely_rows, mark = in_time(rows)
        marks[stream] = datetime.fromtimestamp(mark / 1e6, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
        session.createDataFrame(timely_rows).createOrReplaceTempView(stream)
        session.createDataFrame(rows).createOrReplaceTempView(f"every_{stream}")
    side = str(folder / "source" / "side.parquet")
    session.read.parquet(side).createOrReplaceTempView("side")
    wanted = answers({**marks, "all": min(marks.values())})
    outcomes = []
    for name, query in pipeline.queries.items():
        expected = _counted(session.sql(wanted[name]))
        files = sorted((folder / "run" / "results" / name).glob("*.parquet"))
        actual = _counted(session.read.parquet(*map(str, files))) if files else Counter()
        missing, wrong = (expected - actual).total(), (actual - expected).total()
        outcomes.append(Outcome(name, query.class_, actual.total(), missing, wrong))
    return tuple(outcomes)


def in_time(rows: pa.Table) -> tuple[pa.Table, int]:
    """Return the rows that are not late, and the watermark after the last, in microseconds."""
    top, timely = -(2**63), []
    for time_us in rows["dateTime"].cast(pa.int64()).to_pylist():
        timely.append(time_us >= top - LATENESS_US)
        top = max(top, time_us)
    return rows.filter(pa.array(timely)), top - LATENESS_US


def _rows(folder: Path, stream: str) -> pa.Table:
    files = sorted((folder / "source" / stream).glob("*.parquet"))
    return pa.concat_tables([pq.read_table(file) for file in files])


def _streams_of(sql: str) -> set[str]:
    return {name for name in SCHEMAS if re.search(rf"\b(FROM|JOIN) {name}\b", sql)}


def _counted(frame: DataFrame) -> Counter[tuple[Any, ...]]:
    columns = [column.to_pylist() for column in frame.toArrow().columns]
    return Counter(zip(*columns, strict=True))
