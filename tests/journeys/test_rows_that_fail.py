"""on_error: dead_letter: the answers are those without the bad rows, which are letters once."""

import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from crash import CrashAt
from independent import committed_rows
from kit.batch import batch_session
from kit.gates import balanced, consume, new_gate, until
from pyspark.sql import SparkSession

from headgate import Headgate, Query, Stream, View
from headgate.errors import QueryRefused
from headgate.spark.sharing import sharing_plan

pytestmark = [pytest.mark.spark, pytest.mark.slow]

COUNT, POLL = 180, 15
NEAR = (40, 45, 50, 55)
"""Constants in which queries differ: they share a table of constants."""
SCHEMA = "i INT, t STRING, d INT, at TIMESTAMP"
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def row_of(i: int) -> dict[str, Any]:
    text = f"x{i}" if i % 17 == 5 else str(i)
    return {"i": i, "t": text, "d": i % 13, "at": BEGIN + timedelta(milliseconds=100 * i)}


def rows(first: int) -> Iterator[dict[str, Any]]:
    yield from map(row_of, range(first, COUNT))


def is_text(i: int) -> bool:
    return i % 17 == 5


def register_picky(spark: SparkSession) -> None:
    def picky(i: int) -> int:  # within a function: Spark's workers cannot import this file
        if i % 29 == 7:
            raise ValueError(f"{i} is not to my taste")
        return i

    spark.udf.register("picky", picky, "int")


STATELESS = {
    "cast": "SELECT i, CAST(t AS INT) AS n FROM s",
    "ratio": "SELECT i, 100 DIV d AS q FROM s WHERE 100 / d > 9",
    "exploded": "SELECT i, explode(array(i, i DIV d)) AS e FROM s",
    "python": "SELECT i, picky(i) AS b FROM s WHERE i % 2 = 1",
    "both": "SELECT CAST(t AS INT) + i DIV d AS n FROM s WHERE i % 3 = 0",
    "first_train": f"SELECT i, 9 DIV (i DIV {POLL}) AS q FROM s",
    "parsed": "SELECT i, CAST(t AS INT) AS n, at FROM s",
    "of_parsed": "SELECT n FROM parsed WHERE n > 50",
    **{f"near{k}": f"SELECT i, CAST(t AS INT) AS n FROM s WHERE i > {k}" for k in NEAR},
}
OF_WINDOWS = {
    "sums": "SELECT window.end AS e, i % 2 AS k, sum(CAST(t AS INT)) AS n FROM s"
    " GROUP BY window(at, '2 seconds', '1 second'), i % 2",
    "counts": "SELECT window.end AS e, count(*) AS n FROM s WHERE 100 / d > 9"
    " GROUP BY window(at, '2 seconds')",
    "keys": "SELECT window.end AS e, CAST(t AS INT) DIV 9 AS k, count(*) AS n FROM s"
    " GROUP BY window(at, '3 seconds', '2 seconds'), CAST(t AS INT) DIV 9",
    "tastes": "SELECT window.end AS e, max(picky(i)) AS m FROM s GROUP BY window(at, '3 seconds')",
}
OF_PAIRS = {
    "pairs": "SELECT a.i, b.i AS j FROM s a JOIN s b ON CAST(a.t AS INT) = b.i + 1"
    " AND b.at BETWEEN a.at - INTERVAL 1 SECOND AND a.at + INTERVAL 1 SECOND",
}
WATERMARK = BEGIN + timedelta(milliseconds=100 * (COUNT - 1))
BAD = {
    "sums": [i for i in range(COUNT) if is_text(i)],
    "counts": [i for i in range(COUNT) if i % 13 == 0],
    "keys": [i for i in range(COUNT) if is_text(i)],
    "tastes": [i for i in range(COUNT) if i % 29 == 7],
    "pairs": [i for i in range(COUNT) if is_text(i)],
    "cast": [i for i in range(COUNT) if is_text(i)],
    "ratio": [i for i in range(COUNT) if i % 13 == 0],
    "exploded": [i for i in range(COUNT) if i % 13 == 0],
    "python": [i for i in range(COUNT) if i % 29 == 7 and i % 2 == 1],
    "both": [i for i in range(COUNT) if i % 3 == 0 and (is_text(i) or i % 13 == 0)],
    "first_train": [*range(POLL)],
    "parsed": [i for i in range(COUNT) if is_text(i)],
    "of_parsed": [],
    **{f"near{k}": [i for i in range(COUNT) if is_text(i) and i > k] for k in NEAR},
}
FAILING = {
    "cast_fails": STATELESS["cast"], "near_fails": STATELESS["near40"],
    "sums_fail": OF_WINDOWS["sums"],
}  # fmt: skip
REPAIRED = {"cast_fails": "cast", "sums_fail": "sums"}
"""By query that goes on with dead letters after it has failed, the query that always had them."""
AFTER = {
    "after": "SELECT 1 / (count(*) - 20) AS q FROM s GROUP BY window(at, '2 seconds')",
}
"""An expression over several rows, which no row can break."""
FINE = {"even": "SELECT i FROM s WHERE i % 2 = 0"}
CAUSES = {
    "cast": 'The value \'x5\' of the type "STRING" cannot be cast to "INT"',
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
    for name, sql in (STATELESS | OF_WINDOWS | OF_PAIRS | AFTER).items():
        if name != "parsed":
            gate.add_query(Query(name=name, sql=sql, query_class="H", on_error="dead_letter"))
    for name, sql in (FAILING | FINE).items():
        gate.add_query(Query(name=name, sql=sql, query_class="H"))
    return gate


def expected(spark: SparkSession, sql: str, bad: list[int]) -> Counter[tuple[Any, ...]]:
    """Return Spark's answer in batch over the rows that are not bad."""
    good = [tuple(row_of(i).values()) for i in range(COUNT) if i not in bad]
    with batch_session(spark) as session:
        register_picky(session)
        session.createDataFrame(good, SCHEMA).createOrReplaceTempView("s")
        return Counter(tuple(map(seconds, row)) for row in session.sql(sql).collect())


def seconds(value: Any) -> Any:
    return value.timestamp() if isinstance(value, datetime) else value


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
            wanted = expected(spark, sql, BAD[name])
            if name in OF_WINDOWS:  # those that are closed
                wanted = Counter(
                    {row: n for row, n in wanted.items() if row[0] <= WATERMARK.timestamp()}
                )
            assert results == wanted, name
    if "of_parsed" in texts:
        view = Counter((i,) for i in range(51, COUNT) if not is_text(i))
        assert committed_rows(state / "results" / "of_parsed") == view


POINTS: list[tuple[str | None, dict[str, Any]]] = [
    ("letters written", {"lane": "driver", "train_tuples": POLL}),
    ("letters journalled", {"lane": "job"}),
    (None, {}),
]


def test_bad_rows_are_letters_once_and_the_others_are_delivered_through_crashes(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sharing_plan, "LEAST_ALIKE", len(NEAR))
    register_picky(spark)
    for point, settings in POINTS:
        crash = CrashAt(point, 3)
        gate = gate_of(spark, tmp_path, reached=crash, **settings)
        gate.start()
        if point is None:
            consume(gate, COUNT, but=(*FAILING, *AFTER, "of_parsed", "parsed"))
            until(lambda: gate.totals()["of_parsed"][0] >= COUNT - len(BAD["parsed"]), gate)  # noqa: B023
            for name in FAILING:
                until(lambda: gate.query(name).exception() is not None, gate)  # noqa: B023
                assert "cannot be cast" in str(gate.query(name).exception())
            for name in REPAIRED:
                gate.set_query(name, on_error="dead_letter")
                gate.restart_query(name)
            consume(gate, COUNT, but=("near_fails", *AFTER, "of_parsed", "parsed"))
        else:
            until(crash.dead.is_set, gate)
        status = {row["query"]: row for row in gate.status()["queries"]}
        report = gate.stop()
        balanced(gate)
    assert "Division by zero" in str(gate.query("after").exception())
    check(spark, gate, tmp_path / "state", STATELESS | OF_PAIRS)
    check(spark, gate, tmp_path / "state", OF_WINDOWS)
    state = tmp_path / "state"
    for name, other in REPAIRED.items():
        assert letters_of(state, name) == letters_of(state, other)
        assert gate.accounts()[name] == gate.accounts()[other]
        results = [committed_rows(state / "results" / query) for query in (name, other)]
        assert results[0] == results[1]
    assert status["cast"]["dead_letters"] == len(BAD["cast"])
    assert report is not None
    assert report.dead_letters["sums"] == len(BAD["sums"])
    assert committed_rows(tmp_path / "state/results/even") == expected(spark, FINE["even"], [])


@pytest.mark.parametrize(
    ("sql", "cut", "reason"),
    [
        ("SELECT count(*) AS n FROM s GROUP BY session_window(at, '1 second')", None, "session"),
        ("SELECT upper(t) AS u FROM s WHERE i > 1", True, "cut is not possible with on_error"),
    ],
)
def test_a_query_that_cannot_leave_tuples_out_is_refused(
    spark: SparkSession, tmp_path: Path, sql: str, cut: bool | None, reason: str
) -> None:
    gate = gate_of(spark, tmp_path)
    query = Query(name="q", sql=sql, query_class="H", on_error="dead_letter", cut=cut)
    with pytest.raises(QueryRefused, match=reason):
        gate.add_query(query)
    gate.stop()


def test_kill_between_letters_and_results_leaves_no_letter_twice(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for file in range(12):
        lines = [json.dumps({"i": i}) for i in range(file * POLL, (file + 1) * POLL)]
        (source / f"{file:03d}").write_text("\n".join(lines) + "\n")
    sql = {
        "inverse": "SELECT i, 60 / (i % 7) AS q FROM s",
        "tens": "SELECT max(60 / (i % 7)) AS n FROM s [ROWS 10]",
    }
    options = {"path": str(source), "maxFilesPerTrigger": 1}
    stream = {"format": "json", "schema": "i INT", "options": options, "trigger_s": 0.01}
    queries = {
        name: {"class": "H", "sql": text, "on_error": "dead_letter"} for name, text in sql.items()
    }
    pipeline = {
        "state": str(tmp_path / "state"), "rehearsal_s": 0, "spark": {"master": "local[2]"},
        "classes": {"H": 1}, "streams": {"s": stream}, "queries": queries,
    }  # fmt: skip
    (tmp_path / "pipeline.yaml").write_text(yaml.safe_dump(pipeline))
    script = str(Path(__file__).with_name("consumer.py"))
    command = [sys.executable, script, str(tmp_path / "pipeline.yaml"), str(COUNT)]
    for more, code in ((["letters written", "3"], -signal.SIGKILL), ([], 0)):
        done = subprocess.run(
            [*command, *more], capture_output=True, text=True, check=False, timeout=300,
            start_new_session=True,
        )  # fmt: skip
        assert done.returncode == code, done.stderr
    bad = [i for i in range(COUNT) if i % 7 == 0]
    for name in sql:
        assert [letter["position"] for letter in letters_of(tmp_path / "state", name)] == bad
    accounts = json.loads(done.stdout.splitlines()[-1])
    assert all(account["dead_lettered"] == len(bad) for account in accounts.values())
    inverse = Counter((i, 60 / (i % 7)) for i in range(COUNT) if i % 7)
    assert committed_rows(tmp_path / "state/results/inverse") == inverse
    tens = [[i for i in range(first, first + 10) if i % 7] for first in range(0, COUNT, 10)]
    tops = Counter((max(60 / (i % 7) for i in ten),) for ten in tens)
    assert committed_rows(tmp_path / "state/results/tens") == tops
