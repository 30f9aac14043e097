"""Results of windows, joins and `apply` functions reach a database, a callback and text files."""

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from crash import CrashAt
from derby import Database
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from sinks_run import Receiver
from sources import balanced, consume
from two_streams import Row, answer, gate_over, in_time, rows_of, windows, write

from headgate import Headgate, Query, Sink

pytestmark = [pytest.mark.spark, pytest.mark.slow]

TOTALS = (
    "SELECT k, count(*) AS n, sum(v) AS total FROM lefts [RANGE 20 SECONDS SLIDE 5 SECONDS]"
    " WHERE v > 2 GROUP BY k"
)
PAIRS = (
    "SELECT l.k, l.v AS n, r.v AS total FROM lefts [RANGE 3 SECONDS] l"
    " JOIN rights [RANGE 5 SECONDS] r ON l.k = r.k"
)
EACH = "SELECT k, v FROM lefts [RANGE 10 SECONDS]"


def spread(frame: DataFrame) -> DataFrame:
    """Return the range of the readings of each place, computed by a Python worker."""

    def apart(readings: list[int]) -> int:
        return max(readings) - min(readings)

    places = frame.groupBy("k").agg(F.count("*").alias("n"), F.collect_list("v").alias("all"))
    total = F.udf(apart, "bigint", useArrow=False)("all")
    return places.select("k", "n", total.alias("total"))


TEXTS: dict[str, tuple[str, Any]] = {
    "totals": (TOTALS, None), "pairs": (PAIRS, None), "spreads": (EACH, spread),
}  # fmt: skip


SINKS = {
    "totals": ("jdbc", "callback", "json", "csv"),
    "pairs": ("jdbc", "callback"),
    "spreads": ("callback", "csv"),
}
"""Every sink has the results of windows; the other computations have two sinks each."""


@pytest.fixture
def rows(tmp_path: Path) -> tuple[list[Row], list[Row]]:
    sides = rows_of(11, 100), rows_of(12, 100)
    write(tmp_path / "left", sides[0], 5)
    write(tmp_path / "right", sides[1], 5)
    return sides


def _gate(
    spark: SparkSession, folder: Path, database: Database, receiver: Receiver, **more: Any
) -> Headgate:
    gate = gate_over(spark, folder, {}, train_tuples=20, workers=1, **more)
    for name, (sql, apply) in TEXTS.items():
        for kind in SINKS[name]:
            sink = database.named(name, "headgate_key") if kind == "jdbc" else Sink(format=kind)
            query = Query(name=f"{name}_{kind}", sql=sql, query_class="H", sink=sink, apply=apply)
            gate.add_query(query, deliver=receiver if kind == "callback" else None)
    return gate


@pytest.mark.parametrize(
    "point", [pytest.param("results written", marks=pytest.mark.long), "result delivered"]
)
def test_what_windows_bring_arrives_once_by_key_also_after_a_crash(
    spark: SparkSession, tmp_path: Path, rows: tuple[list[Row], list[Row]], point: str
) -> None:
    database, receiver, crash = Database(spark, tmp_path), Receiver(), CrashAt(point, 3)
    for name in ("totals", "pairs"):
        database.execute(
            f"CREATE TABLE {name} (headgate_key VARCHAR(99) PRIMARY KEY, k VARCHAR(9), n BIGINT,"
            " total BIGINT)"
        )
    gate = _gate(spark, tmp_path, database, receiver, reached=crash)
    gate.start()
    try:
        assert crash.dead.wait(120)
    finally:
        gate.stop()
    gate = _gate(spark, tmp_path, database, receiver)
    gate.start()
    joins = tuple(name for name in gate.totals() if name.startswith("pairs"))
    consume(gate, len(rows[0]), but=joins)
    consume(gate, len(rows[0]) + len(rows[1]), but=tuple(set(gate.totals()) - set(joins)))
    gate.stop()
    balanced(gate)
    for name, expected in _expected(*rows).items():
        assert expected, name
        if "jdbc" in SINKS[name]:
            table = database.rows(f"SELECT k, n, total FROM {name}")
            rows_ = Counter((k, int(n or 0), int(total or 0)) for k, n, total in table)
            assert rows_ == expected, name
        delivered = [
            content
            for key, content in _once(receiver).items()
            if key.startswith(f"{name}_callback/")
        ]
        assert sum(delivered, Counter()) == expected, name
        results = tmp_path / "state" / "results"
        if "json" in SINKS[name]:
            assert _json_rows(results / f"{name}_json") == expected, name
        if "csv" in SINKS[name]:
            assert _csv_rows(results / f"{name}_csv") == expected, name


def _once(receiver: Receiver) -> dict[str, Counter[Any]]:
    contents: dict[str, Counter[Any]] = {}
    for key, content in receiver.deliveries:
        assert contents.setdefault(key, content) == content
    return contents


def _json_rows(folder: Path) -> Counter[Any]:
    lines = [line for file in folder.glob("*.json") for line in file.read_text().splitlines()]
    return Counter(
        (row.get("k"), row["n"], row["total"]) for row in (json.loads(line) for line in lines)
    )


def _csv_rows(folder: Path) -> Counter[Any]:
    rows: Counter[Any] = Counter()
    for file in folder.glob("*.csv"):
        with file.open(newline="") as lines:
            rows.update((k or None, int(n), int(total)) for k, n, total in csv.reader(lines))
    return rows


def _expected(lefts: list[Row], rights: list[Row]) -> dict[str, Counter[tuple[Any, ...]]]:
    punctual, upto = in_time(lefts)
    others, _ = in_time(rights)
    return {
        "totals": answer(
            f"SELECT k, count(*), sum(v)::BIGINT FROM {windows(20, 5, upto)} WHERE v > 2"
            " GROUP BY k, e", lefts=punctual,
        ),
        "pairs": answer(
            "SELECT l.k, l.v, r.v FROM lefts l JOIN rights r ON l.k = r.k"
            " AND l.ts >= r.ts - INTERVAL 3 SECOND AND r.ts >= l.ts - INTERVAL 5 SECOND",
            lefts=punctual, rights=others,
        ),
        "spreads": answer(
            f"SELECT k, count(*), max(v) - min(v) FROM {windows(10, 10, upto)} GROUP BY k, e",
            lefts=punctual,
        ),
    }  # fmt: skip
