"""Shedding on Spark: what is dropped follows from the journal's rules alone, and is all counted.

A shedder draws what every query drops, many times in a run. The expected answer is that of DuckDB
over the source's files, without the tuples that the rules cover; Spark computes their random
numbers in SQL.
"""

import random
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from crash import Crash, CrashAt
from independent import Rows, committed_rows, rows_of
from kit.engines import scheduler_of
from kit.gates import balanced, new_gate, until
from kit.seeds import drawing_seed
from kit.streams import file_stream
from pyspark.sql import SparkSession
from sources import write_readings

from headgate import Headgate, Query
from headgate.errors import QueryRefused
from headgate.model.arrays import Floats
from headgate.model.drop import ValueGraph
from headgate.scheduler.shedder import Load, Shedder
from headgate.spark.journal.journal import Journal
from headgate.spark.log.shedding_rules import Rule, SheddingRules, seed_of
from headgate.workloads.testbeds.forest import SCHEMA

pytestmark = [pytest.mark.spark, pytest.mark.slow]

FILES, ROWS = 10, 100
HEAT = ValueGraph("temperature", ((10.0, 0.0), (42.0, 1.0)))


@dataclass(frozen=True)
class Case:
    """A query, and what DuckDB answers over the tuples that it has not dropped, named `kept`."""

    sql: str
    oracle: str
    more: Mapping[str, Any] = field(default_factory=lambda: {"allows_shedding": True})


def windows(size_s: int, slide_s: int) -> str:
    """Return the oracle of a sum over windows that have closed; all tuples are in time."""
    return (
        f"SELECT count(*), sum(temperature)::BIGINT, make_timestamptz(e * 1000000) FROM (SELECT *,"
        f" unnest(generate_series((us // {slide_s}000000) * {slide_s} + {slide_s},"
        f" (us // {slide_s}000000) * {slide_s} + {size_s}, {slide_s})) AS e FROM kept)"
        " WHERE e * 1000000 <= (SELECT max(us) FROM sensors) GROUP BY e"
    )


def aggregate(size_s: int, slide_s: int) -> str:
    return (
        "SELECT count(*) AS n, sum(temperature) AS t, window.end AS e FROM sensors"
        f" [RANGE {size_s} SECONDS SLIDE {slide_s} SECONDS]"
    )


CASES = {
    "hot": Case(
        "SELECT location, temperature, ts FROM sensors WHERE temperature > 20",
        "SELECT location, temperature, ts FROM kept WHERE temperature > 20",
    ),
    "dry": Case(
        "SELECT location, humidity, ts FROM sensors WHERE humidity < 60",
        "SELECT location, humidity, ts FROM kept WHERE humidity < 60",
    ),
    "whole": Case(
        "SELECT ts, explode(sequence(1, 2)) AS n FROM sensors WHERE temperature > 20",
        "SELECT ts, unnest([1, 2]) FROM kept WHERE temperature > 20",
    ),
    "strict": Case(
        "SELECT location, temperature, ts FROM sensors WHERE temperature > 20",
        "SELECT location, temperature, ts FROM sensors WHERE temperature > 20",
        {"allows_shedding": False},
    ),
    "valued": Case(
        "SELECT temperature, ts FROM sensors",
        "SELECT temperature, ts FROM kept",
        {"allows_shedding": True, "value": HEAT},
    ),
    "tumbling": Case(aggregate(1, 1), windows(1, 1)),
    "sliding": Case(aggregate(2, 1), windows(2, 1)),
}


class Drawn(Shedder):
    """A shedder that decides at every occasion, and draws what is dropped."""

    def __init__(self, seed: object) -> None:
        super().__init__(period_s=1e-9)
        self._random = random.Random(f"{seed}")
        self.reason = "it was drawn"

    def rates(self, load: Load, units: Any, table: Any) -> Floats:
        allows = [path.query.allows_shedding for path in units.network.paths]
        drawn = [self._random.choice([0.0, 0.2, 0.5, 1.0]) for _ in allows]
        return np.array(drawn) * allows


def gate_over(
    spark: SparkSession, folder: Path, seed: object, reached: Callable[[str], None]
) -> Headgate:
    stream = file_stream("sensors", folder / "source", SCHEMA, event_time="ts", quiet_s=None)
    queries = [
        Query(name=name, sql=case.sql, query_class="H", **case.more) for name, case in CASES.items()
    ]
    gate = new_gate(
        spark, folder, [stream], queries, classes={"H": 1}, reached=reached, train_tuples=2 * ROWS
    )
    gate.start()
    overload = scheduler_of(gate).overload
    assert overload is not None
    overload.shedder = Drawn(seed)
    return gate


def dropped(spark: SparkSession, state: Path, name: str, heat: list[int]) -> list[int]:
    """Return the numbers of the tuples that the journal's rules for a query cover."""
    journal = Journal(state)
    (stream,) = (
        key for (key,) in journal.read("SELECT stream FROM cursors WHERE query = ?", (name,))
    )
    rules = SheddingRules(journal).of(name, stream)
    entries = journal.read(
        "SELECT number, first_tuple, tuples FROM entries WHERE timeline = ? AND train >= 0",
        (stream,),
    )
    trains = entries or journal.read(
        "SELECT number, first_tuple, tuples FROM trains WHERE stream = ?", (stream,)
    )
    journal.close()
    rows = [
        (first + place, *parts_of(rule))
        for number, first, tuples in trains
        for rule in [last_of(rules, number)]
        if rule is not None
        for place in range(tuples)
    ]
    if not rows:
        return []
    numbers, limits, thresholds = zip(*rows, strict=True)
    columns = {
        "n": pa.array(numbers, pa.int64()),
        "part": pa.array(limits, pa.float64()),
        "least": pa.array(thresholds, pa.float64()),
        "heat": pa.array([heat[number] for number in numbers], pa.int64()),
    }
    spark.createDataFrame(pa.table(columns)).createOrReplaceTempView("covered")
    chosen = spark.sql(
        "SELECT n FROM covered WHERE CASE WHEN least IS NULL"
        f" THEN pmod(xxhash64({seed_of('sensors')}L, n), 1000000) < part"
        " ELSE least(1, greatest(0, (heat - 10) / 32D)) < least END"
    )
    return [n for (n,) in chosen.collect()]


def last_of(rules: tuple[Rule, ...], train: int) -> Rule | None:
    before = [rule for rule in rules if rule.train <= train]
    return before[-1] if before else None


def parts_of(rule: Rule) -> tuple[float, float | None]:
    return rule.drop.fraction * 1e6, rule.drop.threshold if rule.drop.value else None


def check(spark: SparkSession, folder: Path, gate: Headgate) -> None:
    balanced(gate)
    accounts, state, lost = gate.accounts(), folder / "state", 0
    with duckdb.connect() as db:
        db.execute("SET TimeZone = 'UTC'")
        db.execute(
            "CREATE TABLE sensors AS SELECT * EXCLUDE (filename, file_row_number), epoch_us(ts) AS"
            " us, row_number() OVER (ORDER BY filename, file_row_number) - 1 AS n FROM"
            f" read_parquet('{folder}/source/*.parquet', filename = true, file_row_number = true)"
        )
        heat = [t for (t,) in db.sql("SELECT temperature FROM sensors ORDER BY n").fetchall()]
        for name, case in CASES.items():
            numbers = dropped(spark, state, name, heat)
            assert accounts[name].shed == len(numbers), name
            db.execute("CREATE OR REPLACE TABLE gone (n BIGINT)")
            db.executemany("INSERT INTO gone VALUES (?)", [[n] for n in numbers] or [[-1]])
            db.execute("CREATE OR REPLACE VIEW kept AS FROM sensors WHERE n NOT IN (FROM gone)")
            expected: Rows = rows_of(db, case.oracle)
            rows = committed_rows(state / "results" / name)
            assert rows == expected, (name, rows - expected, expected - rows)
            lost += len(numbers)
    assert accounts["strict"].shed == 0
    assert 0 < lost < FILES * ROWS * len(CASES)


def run_to_the_end(spark: SparkSession, folder: Path, seed: object, points: list[Any]) -> None:
    """Offer files one by one; crash at each point, for the n-th time, and start again."""
    (folder / "source").mkdir()
    crashes = [CrashAt(*point) for point in points] + [CrashAt(None, 0)]
    gate = gate_over(spark, folder, f"{seed} 0", crashes[0])
    for number in range(FILES):
        write_readings(folder / "source", 1, ROWS, first_file=number)
        while not consumed(gate, (number + 1) * ROWS, crashes[0]):
            crashes.pop(0)
            gate = gate_over(spark, folder, f"{seed} {len(crashes)}", crashes[0])
    report = gate.stop()
    assert report is not None
    assert not report.errors
    assert len(crashes) == 1, "a point was never reached"
    check(spark, folder, gate)


def consumed(gate: Headgate, offered: int, crash: CrashAt) -> bool:
    """Wait until all is consumed; return False if the run died before that."""

    def is_over() -> bool:
        accounts = gate.accounts().values()
        done = all(a.arrived == offered and not a.queued for a in accounts)
        return crash.dead.is_set() or done

    with suppress(Crash):
        until(is_over, gate)
    if crash.dead.is_set():
        with suppress(Crash):
            gate.stop()
    return not crash.dead.is_set()


def test_results_are_those_of_the_log_without_the_dropped_tuples(
    spark: SparkSession, tmp_path: Path
) -> None:
    run_to_the_end(spark, tmp_path, drawing_seed(), [])


def test_a_crash_while_tuples_are_dropped_changes_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    points = [("rule journalled", 6), ("results written", 4), ("step journalled", 6)]
    run_to_the_end(spark, tmp_path, drawing_seed(), points)


@pytest.mark.parametrize(
    ("sql", "more", "message"),
    [
        ("SELECT count(*) AS n FROM sensors [ROWS 10]", {}, "has windows by ROWS"),
        (
            "SELECT count(*) AS n FROM sensors GROUP BY session_window(ts, '1 second')", {},
            "groups by session",
        ),
        (
            "SELECT * FROM sensors", {"value": ValueGraph("heat", ((0, 0), (1, 1)))},
            "value column 'heat' is no column of its stream",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_shed_is_refused(
    spark: SparkSession, tmp_path: Path, sql: str, more: dict[str, Any], message: str
) -> None:
    (tmp_path / "source").mkdir()
    stream = file_stream("sensors", tmp_path / "source", SCHEMA, event_time="ts")
    gate = new_gate(spark, tmp_path, [stream], classes={"H": 1})
    with pytest.raises(QueryRefused, match=message):
        gate.add_query(Query(name="q", sql=sql, query_class="H", allows_shedding=True, **more))
    gate.stop()
