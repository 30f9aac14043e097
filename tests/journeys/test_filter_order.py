"""Headgate reorders the conditions of a running query; its results stay the same."""

from pathlib import Path

import pytest
from independent import committed_rows, expected_rows
from pyspark.sql import SparkSession
from sources import consume, gate_over, write_readings

from headgate.model.query import QueryStatistics
from headgate.runtime.recording.statistics_file import record_statistics

pytestmark = pytest.mark.spark

DIGITS = "concat(md5(concat(location, '{0}1')), md5(concat(location, '{0}2')))"
LONG = f"concat({DIGITS.format('a')}, {DIGITS.format('b')})"
OTHER = f"concat({DIGITS.format('c')}, {DIGITS.format('d')})"
COSTLY = f"levenshtein({LONG}, {OTHER}) > 60 AND exp(sin(temperature)) > 0.2D"
TEXTS = {
    # The last condition drops nearly all tuples and costs next to nothing.
    "late": ("H", f"SELECT location, temperature FROM sensors WHERE {COSTLY} AND humidity < 2"),
    # The last condition drops most tuples and is cheap, but fails without the one before it.
    "guarded": (
        "H",
        f"SELECT location FROM sensors WHERE {COSTLY} AND temperature <> 0"
        " AND 1000 / temperature > 100",
    ),
    "plain": ("C", "SELECT location FROM sensors WHERE temperature > 30 AND humidity < 50"),
}


def test_conditions_change_places(spark: SparkSession, tmp_path: Path) -> None:
    source, files = tmp_path / "source", 0
    source.mkdir()
    # Statistics of an earlier run: Headgate reorders only costly queries, and a slow machine might
    # not have the time to measure that these are costly.
    alone_s = {"late": 1e-4, "guarded": 1e-4, "plain": 1e-7}
    (tmp_path / "state").mkdir()
    record_statistics(
        tmp_path / "state",
        {
            name: QueryStatistics(cost_s=cost_s, selectivity=0.5, alone_s=cost_s)
            for name, cost_s in alone_s.items()
        },
    )
    gate = gate_over(spark, tmp_path, TEXTS, train_tuples=1, rehearsal_s=0.1)
    gate.start()
    # Headgate examines one query per second at most, so several files may pass before these two.
    while None in [gate.explanation(name).order for name in ("late", "guarded")]:
        write_readings(source, files=1, rows=300, first_file=files)
        files += 1
        assert files < 200
        consume(gate, 300 * files)
    write_readings(source, files=2, rows=300, first_file=files)
    consume(gate, 300 * (files + 2))
    late, guarded, plain = (gate.explanation(name) for name in TEXTS)
    gate.stop()
    assert late.order is not None
    # The costly condition comes last. Which of the two cheap ones comes first, a busy machine may
    # measure either way.
    assert late.order.split(", then ")[-1].startswith("levenshtein(")
    assert "humidity < 2 AND " in str(late.group_sql) or "WHEN humidity < 2" in str(late.group_sql)
    assert plain.order is None
    assert guarded.order is not None
    assert guarded.order.split(", then ")[-1].startswith("(CAST(1000 AS DOUBLE) /")
    for name, (_, sql) in TEXTS.items():
        rows = committed_rows(tmp_path / "state" / "results" / name)
        oracle = sql.replace("0.2D", "0.2")
        assert rows == expected_rows(oracle, source), name
        assert rows
