"""Late tuples are written to the files of `late_path` exactly once, even after a crash."""

from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from crash import CrashAt, CrashingHeadgate
from kit.streams import file_stream
from pyspark.sql import SparkSession
from sources import balanced, consume, until
from two_streams import LATENESS_S, SCHEMA, Row, in_time, rows_of, write

from headgate import Headgate, Query

pytestmark = pytest.mark.spark

TEXTS = {
    "sums": "SELECT k, sum(v) AS t FROM lefts [RANGE 5 SECONDS] GROUP BY k",
    "sessions": "SELECT count(*) AS n FROM lefts GROUP BY session_window(ts, '1 second')",
    "join": "SELECT a.v, b.v AS w FROM lefts [RANGE 1 SECOND] a JOIN rights [RANGE 1 SECOND] b"
    " ON a.k = b.k",
}


def gate_over(spark: SparkSession, folder: Path, **more: Any) -> Headgate:
    gate = CrashingHeadgate(spark, state=folder / "state", rehearsal_s=0, train_tuples=20, **more)
    for name in ("left", "right"):
        late_path = str(folder / "late") if name == "left" else None
        gate.add_stream(
            file_stream(
                name + "s", folder / name, SCHEMA, lateness_s=LATENESS_S, late_path=late_path
            )
        )
    for name, sql in TEXTS.items():
        gate.add_query(Query(name=name, sql=sql, query_class="default"))
    return gate


def numbers(rows: list[Row]) -> dict[int, str]:
    """Return the reason why rows are in no window, `late` or `no time`, by the row's number."""
    reasons: dict[int, str] = {}
    top: datetime | None = None
    for number, (_, _, time) in enumerate(rows):
        if time is None:
            reasons[number] = "no time"
        elif top is not None and (top - time).total_seconds() > LATENESS_S:
            reasons[number] = "late"
        top = time if top is None else max(top, time or top)
    return reasons


@pytest.mark.parametrize(
    "point", [None, pytest.param("train journalled", marks=pytest.mark.long), "step journalled"]
)
def test_late_tuples_are_in_files_once(
    spark: SparkSession, tmp_path: Path, point: str | None
) -> None:
    lefts, rights = rows_of(21, 120), rows_of(22, 60)
    write(tmp_path / "left", lefts, 6)
    write(tmp_path / "right", rights, 3)
    if point is not None:
        crash = CrashAt(point, 3)
        first = gate_over(spark, tmp_path, workers=1, reached=crash)
        first.start()
        until(crash.dead.is_set, first)
        first.stop()
    gate = gate_over(spark, tmp_path)
    gate.start()
    consume(gate, len(lefts), but=("join",))
    until(lambda: gate.totals()["join"][0] >= len(lefts) + len(rights), gate)
    gate.stop()
    balanced(gate)
    files = sorted((tmp_path / "late").glob("*.parquet"))
    late = [row for file in files for row in pq.read_table(file).to_pylist()]
    expected = numbers(lefts)
    assert Counter((row["_number"], row["_why"]) for row in late) == Counter(expected.items())
    assert [(row["k"], row["v"], row["ts"]) for row in late] == [lefts[n] for n in expected]
    assert {file.name[:6] for file in files} == {"lefts-"}
    punctual, _ = in_time(lefts)
    assert len(late) == len(lefts) - len(punctual) > 0
    assert gate.accounts()["sums"].late == sum(why == "late" for why in expected.values())
    frame = spark.read.parquet(str(tmp_path / "late"))
    assert frame.count() == len(late)
