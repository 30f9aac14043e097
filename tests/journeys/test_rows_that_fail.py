"""on_error: dead_letter: the answers are those without the bad rows, which are letters once."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from crash import CrashAt
from independent import committed_rows
from kit.batch import batch_session
from kit.gates import balanced, consume, new_gate, until
from pyspark.sql import SparkSession

from headgate import Headgate, Query, Stream, View

pytestmark = pytest.mark.spark

COUNT, POLL = 180, 15
SCHEMA = "i INT, t STRING, d INT, at TIMESTAMP"
BEGIN = datetime(2026, 1, 1)


def row_of(i: int) -> dict[str, Any]:
    text = f"x{i}" if i % 17 == 5 else str(i)
    return {"i": i, "t": text, "d": i % 13, "at": BEGIN + timedelta(milliseconds=100 * i)}


def rows(first: int) -> Iterator[dict[str, Any]]:
    yield from map(row_of, range(first, COUNT))


def is_text(i: int) -> bool:
    return i % 17 == 5


def picky(i: int) -> int:
    if i % 29 == 7:
        raise ValueError(f"{i} is not to my taste")
    return i


STATELESS = {
    "cast": "SELECT i, CAST(t AS INT) AS n FROM s",
    "ratio": "SELECT i, 100 DIV d AS q FROM s WHERE 100 / d > 9",
    "exploded": "SELECT i, explode(array(i, i DIV d)) AS e FROM s",
    "python": "SELECT i, picky(i) AS b FROM s WHERE i % 2 = 1",
    "both": "SELECT CAST(t AS INT) + i DIV d AS n FROM s WHERE i % 3 = 0",
    "parsed": "SELECT i, CAST(t AS INT) AS n, at FROM s",
    "of_parsed": "SELECT n FROM parsed WHERE n > 50",
    **{f"near{k}": f"SELECT i, CAST(t AS INT) AS n FROM s WHERE i > {k}" for k in range(40, 64)},
}
BAD = {
    "cast": [i for i in range(COUNT) if is_text(i)],
    "ratio": [i for i in range(COUNT) if i % 13 == 0],
    "exploded": [i for i in range(COUNT) if i % 13 == 0],
    "python": [i for i in range(COUNT) if i % 29 == 7 and i % 2 == 1],
    "both": [i for i in range(COUNT) if i % 3 == 0 and (is_text(i) or i % 13 == 0)],
    "parsed": [i for i in range(COUNT) if is_text(i)],
    "of_parsed": [],
    **{f"near{k}": [i for i in range(COUNT) if is_text(i) and i > k] for k in range(40, 64)},
}
FAILING = {"cast_fails": STATELESS["cast"], "near_fails": STATELESS["near63"]}
FINE = {"even": "SELECT i FROM s WHERE i % 2 = 0"}
CAUSES = {
    "cast": "The value 'x5' of the type \"STRING\" cannot be cast to \"INT\"",
    "ratio": "Division by zero",
    "python": "ValueError: 7 is not to my taste",
}


def gate_of(spark: SparkSession, folder: Path, **settings: Any) -> Headgate:
    options = {"rowsPerPoll": str(POLL)}
    stream = Stream(
        name="s", format="python", options=options, schema=SCHEMA, event_time="at", trigger_s=0.01,
        quiet_s=None,
    )  # fmt: skip
    gate = new_gate(spark, folder, [], classes={"H": 1}, share="all", **settings)
    gate.add_stream(stream, rows=rows)
    gate.add_view(
        View(name="parsed", sql=STATELESS["parsed"], event_time="at", on_error="dead_letter")
    )
    for name, sql in STATELESS.items():
        if name != "parsed":
            gate.add_query(Query(name=name, sql=sql, query_class="H", on_error="dead_letter"))
    for name, sql in (FAILING | FINE).items():
        gate.add_query(Query(name=name, sql=sql, query_class="H"))
    return gate


def expected(spark: SparkSession, sql: str, bad: list[int]) -> Counter[tuple[Any, ...]]:
    """Return Spark's answer in batch over the rows that are not bad."""
    good = [tuple(row_of(i).values()) for i in range(COUNT) if i not in bad]
    with batch_session(spark) as session:
        session.createDataFrame(good, SCHEMA).createOrReplaceTempView("s")
        return Counter(tuple(row) for row in session.sql(sql).collect())


def letters_of(state: Path, query: str) -> list[dict[str, Any]]:
    file = state / "dead-letters" / "queries" / f"{query}.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def check(spark: SparkSession, gate: Headgate, state: Path, texts: Mapping[str, str]) -> None:
    accounts = gate.accounts()
    for name, sql in texts.items():
        letters = letters_of(state, name)
        assert [letter["position"] for letter in letters] == BAD[name], name
        assert accounts[name].dead_lettered == len(BAD[name]), name
        for letter in letters:
            row = row_of(letter["position"])
            assert letter["row"] == {**row, "at": letter["row"]["at"]}
            assert letter["stream"] == "s"
        if name in CAUSES:
            assert letters[0]["cause"].startswith(CAUSES[name])
        if name not in ("parsed", "of_parsed"):
            results = committed_rows(state / "results" / name)
            assert results == expected(spark, sql, BAD[name]), name
    view = Counter((i,) for i in range(51, COUNT) if not is_text(i))
    assert committed_rows(state / "results" / "of_parsed") == view


POINTS: list[tuple[str | None, dict[str, Any]]] = [
    ("letters written", {"lane": "driver", "train_tuples": POLL}),
    ("letters journalled", {"lane": "driver"}),
    ("step journalled", {"lane": "job"}),
    (None, {}),
]


def test_bad_rows_are_letters_once_and_the_others_are_delivered_through_crashes(
    spark: SparkSession, tmp_path: Path
) -> None:
    spark.udf.register("picky", picky, "int")
    for point, settings in POINTS:
        crash = CrashAt(point, 3)
        gate = gate_of(spark, tmp_path, reached=crash, **settings)
        gate.start()
        if point is None:
            consume(gate, COUNT, but=(*FAILING, "of_parsed", "parsed"))
            until(lambda: gate.totals()["of_parsed"][0] >= COUNT - len(BAD["parsed"]), gate)  # noqa: B023
            for name in FAILING:
                until(lambda: gate.query(name).exception() is not None, gate)  # noqa: B023
                assert "cannot be cast" in str(gate.query(name).exception())
        else:
            until(crash.dead.is_set, gate)
        status = {row["query"]: row for row in gate.status()["queries"]}
        gate.stop()
        balanced(gate)
    check(spark, gate, tmp_path / "state", STATELESS)
    assert status["cast"]["dead_letters"] == len(BAD["cast"])
    assert committed_rows(tmp_path / "state/results/even") == expected(spark, FINE["even"], [])
