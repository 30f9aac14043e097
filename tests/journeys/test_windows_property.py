"""Queries with windows commit the batch answer under every policy, train size and crash."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow.parquet as pq
import pytest
from crash import CrashAt, CrashingHeadgate
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st
from independent import committed_rows
from pyspark.sql import SparkSession
from sources import balanced
from window_cases import SECOND, Row, WindowQuery, answer, queries, streams, table_of

from headgate import Query, Stream
from headgate.model.stream import Ingest

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SCHEMA = "k STRING, v INT, ts TIMESTAMP"
# No shrinking, which would run Spark for an hour: a failing case is printed as it was drawn.
UNSHRUNK = (Phase.explicit, Phase.reuse, Phase.generate)
POINTS = ["train written", "train journalled", "results written", "step journalled"]


@dataclass(frozen=True)
class Case:
    files: dict[str, list[list[Row]]]
    queries: list[WindowQuery]
    policy: str
    train_tuples: int
    files_a_trigger: int
    workers: int
    lateness_s: int
    retention_s: float
    ingest: Ingest
    crash_at: str | None
    crash_after: int


cases = st.builds(
    Case,
    files=st.fixed_dictionaries({"lefts": streams(), "rights": streams()}),
    queries=st.lists(queries, min_size=5, max_size=5),
    policy=st.sampled_from(["cqc", "rr", "edf", "bsd"]),
    train_tuples=st.sampled_from([1, 7, 10**9]),
    files_a_trigger=st.integers(1, 3),
    workers=st.integers(1, 3),
    lateness_s=st.sampled_from([0, 3]),
    retention_s=st.sampled_from([0.0, 3600.0]),
    ingest=st.sampled_from(["auto", "auto", "spark"]),
    crash_at=st.sampled_from([None, None, *POINTS]),
    crash_after=st.integers(0, 6),
)


@settings(max_examples=2, phases=UNSHRUNK, suppress_health_check=list(HealthCheck))
@given(case=cases)
def test_windows_equal_the_batch_answer(spark: SparkSession, case: Case) -> None:
    with TemporaryDirectory() as name:
        _check(spark, Path(name), case)


@pytest.mark.long
@settings(max_examples=70, phases=UNSHRUNK, suppress_health_check=list(HealthCheck))
@given(case=cases)
def test_windows_equal_the_batch_answer_in_the_long_form(spark: SparkSession, case: Case) -> None:
    with TemporaryDirectory() as name:
        _check(spark, Path(name), case)


def _check(spark: SparkSession, folder: Path, case: Case) -> None:
    for name, files in case.files.items():
        (folder / name).mkdir()
        for number, file in enumerate(files):
            path = folder / name / f"{number:04d}.parquet"
            pq.write_table(table_of(file), path)
            os.utime(path, (number, number))  # Structured Streaming reads the oldest file first
    rows = {name: [row for file in files for row in file] for name, files in case.files.items()}
    offered = {
        f"q{number}": sum(len(rows[stream]) for stream in query.streams)
        for number, query in enumerate(case.queries)
    }
    crash = CrashAt(case.crash_at, case.crash_after)
    _run(spark, folder, case, offered, crash, crash.dead.is_set)
    if crash.dead.is_set():
        note(f"crashed at {case.crash_at}")
        _run(spark, folder, case, offered, lambda point: None, lambda: False)
    for number, query in enumerate(case.queries):
        committed = committed_rows(folder / "state" / "results" / f"q{number}")
        assert committed == answer(query, rows, case.lateness_s * SECOND), query


def _run(
    spark: SparkSession,
    folder: Path,
    case: Case,
    offered: dict[str, int],
    reached: Callable[[str], None],
    ended: Callable[[], bool],
) -> None:
    gate = CrashingHeadgate(
        spark,
        state=folder / "state",
        policy=case.policy,
        classes={"H": 3, "N": 1},
        workers=case.workers,
        train_tuples=case.train_tuples,
        retention_s=case.retention_s,
        rehearsal_s=0,
        reached=reached,
    )
    for name in case.files:
        # Structured Streaming does not define in which order it reads the files of a batch.
        files = case.files_a_trigger if case.ingest == "auto" else 1
        options = {"path": str(folder / name), "maxFilesPerTrigger": str(files)}
        gate.add_stream(
            Stream(
                name=name, format="parquet", schema=SCHEMA, event_time="ts", options=options,
                trigger_s=0.01, lateness_s=case.lateness_s, quiet_s=None, ingest=case.ingest,
            )
        )  # fmt: skip
    for number, query in enumerate(case.queries):
        gate.add_query(Query(name=f"q{number}", sql=query.sql, query_class="HN"[number % 2]))
    gate.start()
    try:
        for _ in range(1200):
            totals = gate.totals()
            if ended() or all(totals[name][0] >= count for name, count in offered.items()):
                break
            gate.wait(0.05)
        else:
            raise AssertionError(f"the run did not finish: {gate.totals()}, {gate.report().errors}")
    finally:
        gate.stop()
    if not ended():
        balanced(gate)
