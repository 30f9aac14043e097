"""The output of a query never depends on policy, train size, fusion, workers or a crash."""

import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from crash import Crash, CrashAt, CrashingHeadgate
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from independent import committed_rows, expected_rows
from kit.seeds import drawing_seed
from pyspark.sql import SparkSession

from headgate import Query, Stream
from headgate.errors import QueryRefused
from headgate.policies import policies

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SCHEMA = "location STRING, temperature INT, humidity DOUBLE, ts TIMESTAMP"
ARROW = pa.schema(
    [
        ("location", pa.string()),
        ("temperature", pa.int32()),
        ("humidity", pa.float64()),
        ("ts", pa.timestamp("us", tz="UTC")),
    ]
)
# No shrinking, which would run Spark for an hour: a failing case is printed as it was drawn.
UNSHRUNK = (Phase.explicit, Phase.reuse, Phase.generate)
POINTS = [
    *("train written", "train named", "train journalled"),
    *("result written", "results written", "step journalled", "result visible"),
]

# Queries that mean the same to Spark and to DuckDB; `{a}` and `{b}` are drawn.
TEXTS = [
    "SELECT location, temperature, ts FROM sensors WHERE temperature > {a}",
    "SELECT * FROM sensors WHERE temperature BETWEEN {a} AND {b}",
    "SELECT temperature + {a} AS warmer, humidity FROM sensors WHERE humidity < {b}",
    "SELECT s.location, s.temperature * 2 AS twice FROM sensors s WHERE s.location = 'l{a}'",
    "SELECT location FROM sensors WHERE location IN ('l1', 'l{a}') OR temperature = {b}",
    "SELECT CASE WHEN temperature > {a} THEN 'hot' ELSE 'cold' END AS kind, ts FROM sensors",
    "SELECT coalesce(location, 'nowhere') AS place FROM sensors WHERE location IS NULL",
    "SELECT location, humidity FROM sensors WHERE NOT (temperature > {a} AND humidity > {b})",
    "SELECT upper(location) AS up, length(location) AS n FROM sensors WHERE location LIKE '%{a}'",
    "SELECT length(location) AS n FROM sensors WHERE temperature > {a} AND upper(location) > 'L3'",
    "SELECT ts FROM sensors",
    "SELECT x.warm FROM (SELECT temperature + 1 AS warm FROM sensors) x WHERE x.warm < {b}",
    "SELECT 100 / (temperature - {a}) AS quotient FROM sensors WHERE temperature <> {a}",
    "SELECT location || '{{,}}' AS braces FROM sensors WHERE temperature < {b}",
]

rows = st.fixed_dictionaries(
    {
        "location": st.none() | st.integers(0, 9).map("l{}".format),
        "temperature": st.none() | st.integers(-20, 50),
        "humidity": st.none() | st.floats(0, 100, allow_nan=False),
        "ts": st.integers(-(10**12), 2 * 10**15),
    }
)
texts = st.builds(
    lambda text, a, b: text.format(a=a, b=b),
    st.sampled_from(TEXTS),
    st.integers(0, 9),
    st.integers(0, 40),
)

ON_SPARK = sorted(name for name, entry in policies().items() if "spark" in entry.engines)


@dataclass(frozen=True)
class Case:
    files: list[list[dict[str, Any]]]
    queries: list[str]
    policy: str
    train_tuples: int
    lane: Any
    ingest: Any
    most_fused: int
    workers: int
    files_a_trigger: int
    crash_at: str | None
    crash_after: int
    cut: bool = False
    shared_priority: Any = "pdt"


cases = st.builds(
    Case,
    files=st.lists(st.lists(rows, min_size=1, max_size=30), min_size=1, max_size=6),
    queries=st.lists(texts, min_size=1, max_size=6),
    policy=st.sampled_from(ON_SPARK),
    train_tuples=st.sampled_from([1, 7, 50, 10**9]),
    lane=st.sampled_from([None, "driver", "job"]),
    ingest=st.sampled_from(["auto", "spark"]),
    most_fused=st.sampled_from([1, 3, 16]),
    workers=st.integers(1, 3),
    files_a_trigger=st.integers(1, 3),
    crash_at=st.sampled_from([None, *POINTS]),
    crash_after=st.integers(0, 4),
    cut=st.booleans(),
    shared_priority=st.sampled_from(["pdt", "max", "sum"]),
)


ROW = {"location": "l1", "temperature": 20, "humidity": 5.0, "ts": 0}
SECOND_TRAIN_NAMED_BUT_NOT_JOURNALLED = Case(
    files=[[ROW], [ROW], [ROW]],
    queries=["SELECT ts FROM sensors", "SELECT location FROM sensors WHERE temperature > 3"],
    policy="rr",
    train_tuples=50,
    lane=None,
    ingest="spark",
    most_fused=3,
    workers=1,
    files_a_trigger=1,
    crash_at="train named",
    crash_after=1,
)
"""The driver has written the train as a file; its replay by Spark is a folder in the same place."""


def _run(
    spark: SparkSession, folder: Path, case: Case, reached: Callable[[str], None], ended: Any
) -> None:
    gate = CrashingHeadgate(
        spark,
        state=folder / "state",
        policy=case.policy,
        classes={"H": 3, "N": 1},
        workers=case.workers,
        train_tuples=case.train_tuples,
        most_fused=case.most_fused,
        lane=case.lane,
        shared_priority=case.shared_priority,
        rehearsal_s=0,
        reached=reached,
    )
    options = {"path": str(folder / "source"), "maxFilesPerTrigger": str(case.files_a_trigger)}
    gate.add_stream(
        Stream(
            name="sensors", format="parquet", options=options, schema=SCHEMA, trigger_s=0.01,
            ingest=case.ingest,
        )
    )  # fmt: skip
    for number, sql in enumerate(case.queries):
        query = Query(name=f"q{number}", sql=sql, query_class="HN"[number % 2], cut=case.cut)
        try:
            gate.add_query(query)
        except QueryRefused:  # the query cannot be cut
            gate.add_query(replace(query, cut=False))
    gate.start()
    offered = sum(map(len, case.files))
    try:
        for _ in range(600):
            if ended() or all(consumed >= offered for consumed, _ in gate.totals().values()):
                break
            gate.wait(0.1)
        else:
            raise AssertionError("the run did not finish")
    finally:
        with suppress(Crash):  # the stop drops trains, too, and the crash raises at every point
            gate.stop()


@settings(max_examples=5, phases=UNSHRUNK, suppress_health_check=list(HealthCheck))
@example(case=SECOND_TRAIN_NAMED_BUT_NOT_JOURNALLED)
@given(case=cases)
def test_committed_output_equals_the_batch_answer(spark: SparkSession, case: Case) -> None:
    with TemporaryDirectory() as name:
        _check(spark, Path(name), case)


@pytest.mark.long
@settings(max_examples=120, phases=UNSHRUNK, suppress_health_check=list(HealthCheck))
@given(case=cases)
def test_committed_output_equals_the_batch_answer_in_the_long_form(
    spark: SparkSession, case: Case
) -> None:
    with TemporaryDirectory() as name:
        _check(spark, Path(name), case)


def _random_case(rng: random.Random, policy: str) -> Case:
    """Draw a case without Hypothesis, which tends to vary cases that it has drawn before."""

    def row() -> dict[str, Any]:
        return {
            "location": rng.choice([None, *(f"l{n}" for n in range(10))]),
            "temperature": rng.choice([None, *range(-20, 51)]),
            "humidity": rng.choice([None, 0.0, 100.0, 5e-324, *(100 * rng.random(),) * 9]),
            "ts": rng.randint(-(10**12), 2 * 10**15),
        }

    return Case(
        files=[[row() for _ in range(rng.randint(1, 30))] for _ in range(rng.randint(1, 6))],
        queries=[
            rng.choice(TEXTS).format(a=rng.randint(0, 9), b=rng.randint(0, 40))
            for _ in range(rng.randint(2, 6))
        ],
        policy=policy,
        train_tuples=rng.choice([1, 7, 50, 10**9]),
        lane=rng.choice([None, "driver", "job"]),
        ingest=rng.choice(["auto", "spark"]),
        most_fused=rng.choice([1, 3, 16]),
        workers=rng.randint(1, 3),
        files_a_trigger=rng.randint(1, 3),
        crash_at=rng.choice([None, *POINTS]),
        crash_after=rng.randint(0, 4),
        cut=rng.choice([True, False]),
        shared_priority=rng.choice(["pdt", "max", "sum"]),
    )


@pytest.mark.long
def test_every_policy_gives_the_batch_answer_to_two_hundred_queries(
    spark: SparkSession, tmp_path: Path
) -> None:
    rng = random.Random(drawing_seed())
    texts_run: set[str] = set()
    for number, policy in enumerate(ON_SPARK * 4):
        case = _random_case(rng, policy)
        print(f"{number}: {replace(case, files=[])}")
        folder = tmp_path / str(number)
        folder.mkdir()
        _check(spark, folder, case)
        texts_run.update(case.queries)
    assert len(texts_run) >= 200


def _check(spark: SparkSession, folder: Path, case: Case) -> None:
    source = folder / "source"
    source.mkdir()
    for number, file in enumerate(case.files):
        pq.write_table(pa.Table.from_pylist(file, ARROW), source / f"{number}.parquet")
    crash = CrashAt(case.crash_at, case.crash_after)
    _run(spark, folder, case, crash, crash.dead.is_set)
    if crash.dead.is_set():
        print(f"crashed at {case.crash_at}")
        _run(spark, folder, case, lambda point: None, lambda: False)
    for number, sql in enumerate(case.queries):
        committed = committed_rows(folder / "state" / "results" / f"q{number}")
        assert committed == expected_rows(sql, source), f"q{number}: {sql}"
