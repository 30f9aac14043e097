"""What every sink must satisfy. The registry lists them, so a new one needs only its case."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path as File
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from crash import Crash, CrashAt
from derby import Database
from driver_reads import schema_of
from pyspark.sql import SparkSession

import headgate as hg
from headgate.errors import ConfigRefused, QueryRefused
from headgate.extensions import Receiver, SinkContext, sink_entry, sinks
from headgate.model.network.network import Path
from headgate.model.network.operator import Operator
from headgate.model.query import Deliver
from headgate.spark.engine.recovery import recover
from headgate.spark.journal.cursors import Cursors
from headgate.spark.journal.journal import Journal
from headgate.spark.jvm.arrow_frames import collected
from headgate.spark.output import Output
from headgate.spark.sinks.commit import Commits
from headgate.spark.sinks.files.file_sink import FileSink
from headgate.spark.sinks.memory import Memory
from headgate.spark.sinks.outbox import Outbox
from headgate.spark.sinks.query_sink import refuse_sink, sink_of
from headgate.spark.work import Work

pytestmark = pytest.mark.spark

DDL = "n BIGINT, word STRING"
TRAINS = 3
ROWS = {train: [(10 * train + row, f"w{row}") for row in range(3)] for train in range(TRAINS)}
EXPECTED = Counter(row for rows in ROWS.values() for row in rows)

POINTS = [
    *("result written", "results written", "step journalled", "result visible"),
    *("delivery begun", "result delivered"),
]
"""Points where a crash must lose nothing; the last two lie before and after a delivery."""

Rows = Counter[tuple[int, str]]
SHARED: list[tuple[str, Rows]] = []
"""Keys and rows that the receiver of a user has stored, as somebody outside the process has it."""


@hg.sink("stored", options={"limit": "the largest number"}, delivery="at least once",
         check=lambda options: options.whole("limit", 9, least=1))  # fmt: skip
class Stored(Receiver):
    """A sink as a user writes it."""

    def __init__(self, context: SinkContext) -> None:
        self.calls: list[str] = []

    def open(self) -> None:
        self.calls.append("open")

    def deliver(self, rows: pa.Table, key: str) -> None:
        self.calls.append(key)
        SHARED.append((key, rows_of(rows)))

    def close(self) -> None:
        self.calls.append("close")


def rows_of(table: pa.Table) -> Rows:
    columns = [column.to_pylist() for column in table.columns]
    return Counter(zip(*columns, strict=True))


@dataclass
class Case:
    """A sink, what it holds, and what is wrong with another one.

    Args:
        rows: returns all rows that the sink holds, from the sinks of both runs.
        refused: an option that is refused, with its value; None if the sink has none.
        deliveries: for a receiver that shows them, the keys and rows that were delivered.
    """

    sink: hg.Sink
    rows: Callable[[list[FileSink]], Rows]
    refused: tuple[str, str] | None = None
    deliver: Deliver | None = None
    deliveries: list[tuple[str, Rows]] = field(default_factory=list)


def files_in(folder: File, kind: str) -> list[File]:
    return sorted(folder.glob(f"*.{kind}"))


def lines_in(folder: File, kind: str) -> Iterable[str]:
    return (line for file in files_in(folder, kind) for line in file.read_text().splitlines())


def parquet(folder: File) -> Case:
    def rows(_: list[FileSink]) -> Rows:
        return rows_of(pa.concat_tables(map(pq.read_table, files_in(folder, "parquet"))))

    return Case(hg.Sink(path=str(folder)), rows, ("compression", "zip"))


def json_lines(folder: File) -> Case:
    def rows(_: list[FileSink]) -> Rows:
        records = [json.loads(line) for line in lines_in(folder, "json")]
        return Counter((record["n"], record["word"]) for record in records)

    return Case(hg.Sink(format="json", path=str(folder)), rows)


def csv(folder: File) -> Case:
    def rows(_: list[FileSink]) -> Rows:
        pairs = [line.split(",") for line in lines_in(folder, "csv")]
        return Counter((int(number), word) for number, word in pairs)

    return Case(hg.Sink(format="csv", path=str(folder)), rows)


def console(capture: pytest.CaptureFixture[str]) -> Case:
    def rows(_: list[FileSink]) -> Rows:
        lines = [line for line in capture.readouterr().out.splitlines() if line.startswith("q: ")]
        records = [json.loads(line.removeprefix("q: ")) for line in lines]
        return Counter((record["n"], record["word"]) for record in records)

    return Case(hg.Sink(format="console"), rows)


def memory() -> Case:
    def rows(sinks: list[FileSink]) -> Rows:
        total: Rows = Counter()
        for sink in sinks:
            assert isinstance(sink, Outbox)
            assert isinstance(sink.receiver, Memory)
            total += rows_of(sink.receiver.rows())
        return total

    return Case(hg.Sink(format="memory"), rows, ("rows", "0"))


def callback() -> Case:
    deliveries: list[tuple[str, Rows]] = []
    return Case(
        hg.Sink(format="callback"), lambda _: sum((rows for _, rows in deliveries), Counter()),
        deliver=lambda table, key: deliveries.append((key, rows_of(table))),
        deliveries=deliveries,
    )  # fmt: skip


def jdbc(spark: SparkSession, folder: File) -> Case:
    database = Database(spark, folder)
    database.execute(
        "CREATE TABLE t (headgate_key VARCHAR(99) PRIMARY KEY, n BIGINT, word VARCHAR(9))"
    )

    def rows(_: list[FileSink]) -> Rows:
        pairs = database.rows("SELECT n, word FROM t")
        return Counter((int(str(number)), str(word)) for number, word in pairs)

    return Case(database.named("t", "headgate_key"), rows, ("key", " "))


def stored() -> Case:
    SHARED.clear()
    rows = lambda _: sum((rows for _, rows in SHARED), Counter())  # noqa: E731
    return Case(hg.Sink(format="stored"), rows, ("limit", "none"), deliveries=SHARED)


LEFT_OUT = {
    "kafka": "needs a Spark session with the connector; tests/journeys/test_kafka_sink.py kills it",
    "receipts": "belongs to tests/chaos, which kills its deliveries",
    "stream": "has no files of its own; tests/journeys/test_segments.py crashes its commits",
}
CASES: dict[str, Callable[[pytest.FixtureRequest, File], Case]] = {
    "parquet": lambda request, folder: parquet(folder / "out"),
    "json": lambda request, folder: json_lines(folder / "out"),
    "csv": lambda request, folder: csv(folder / "out"),
    "console": lambda request, folder: console(request.getfixturevalue("capsys")),
    "memory": lambda request, folder: memory(),
    "callback": lambda request, folder: callback(),
    "jdbc": lambda request, folder: jdbc(request.getfixturevalue("session"), folder),
    "stored": lambda request, folder: stored(),
}
EVERY = [name for name in sorted(sinks()) if name not in LEFT_OUT]


@pytest.fixture(params=EVERY)
def case(request: pytest.FixtureRequest, tmp_path: File) -> Case:
    assert request.param in CASES, f"add a case for the sink {request.param} to this file"
    return CASES[request.param](request, tmp_path)


def path_to(session: SparkSession, sink: hg.Sink) -> Path:
    query = hg.Query(name="q", sql="x", query_class="H", sink=sink)
    operators = (Operator(kind="project", expressions=("n", "word")),)
    schema = schema_of(session, DDL).json()
    return Path(query=query, stream="s", operators=operators, columns=("n", "word"), schema=schema)


class Run:
    """A query that commits the same result for each train, until it is done or dies."""

    def __init__(
        self, session: SparkSession, state: File, case: Case, reached: Callable[[str], None]
    ) -> None:
        self._session, self._journal = session, Journal(state)
        self._path = path_to(session, case.sink)
        Cursors(self._journal).remember("q", "x", "s")
        refuse_sink(session, self._path, case.deliver)
        self.sink = sink_of(self._path, session, state, case.deliver, reached)
        recover(self._journal, {"q": self.sink}, reached)
        self._commits = Commits(self._journal, {"q": self.sink}, reached)

    def __call__(self) -> None:
        self.sink.resume()
        for train in range(Cursors(self._journal).train_of("q") or 0, TRAINS):
            arrived_at_s = np.zeros(len(ROWS[train]))
            output = Output(self._table(ROWS[train]), arrived_at_s)
            work = Work((self._path,), train, train + 1, len(ROWS[train]))
            assert self._commits(work, [(self._path, output)]) == {}

    def end(self) -> None:
        self.sink.close(10.0)
        self.sink.join()
        self._journal.close()

    def _table(self, rows: list[tuple[int, str]]) -> pa.Table:
        frame = self._session.createDataFrame(rows, DDL)
        text = self.sink.text(["n", "word"], ["n", "word"])
        return collected(frame if text is None else frame.selectExpr(text))


@pytest.mark.parametrize("point", POINTS)
def test_a_crash_loses_nothing_and_repeats_only_what_is_declared(
    session: SparkSession, tmp_path: File, case: Case, point: str
) -> None:
    crash = CrashAt(point, 1)
    first = Run(session, tmp_path / "state", case, crash)
    with suppress(Crash):
        first()
    if isinstance(first.sink, Outbox) or point not in POINTS[-2:]:  # files are not delivered
        assert crash.dead.wait(20)
    with suppress(Crash):
        first.end()
    second = Run(session, tmp_path / "state", case, lambda point: None)
    second()
    second.end()
    rows = case.rows([first.sink, second.sink])
    entry = sink_entry(case.sink.format)
    assert entry is not None
    if entry.delivery == "exactly once":
        assert rows == EXPECTED
    else:
        assert rows >= EXPECTED
        # Only the one result that was delivered, but not yet removed, is delivered again.
        repeated = rows - EXPECTED
        assert repeated == (Counter(ROWS[1]) if point == "result delivered" else Counter())
    keys = [key for key, _ in case.deliveries]
    if keys:
        once = dict(case.deliveries)
        assert [*dict.fromkeys(keys)] == ["q/0-0", "q/1-1", "q/2-2"]
        assert all(once[key] == rows for key, rows in case.deliveries)


def test_a_wrong_value_is_refused_with_the_query_and_the_option(case: Case) -> None:
    if case.refused is None:
        assert not [name for name in _options(case) if name != "header"]
        return
    name, value = case.refused
    options = {**case.sink.options, name: value}
    with pytest.raises(QueryRefused) as refused:
        hg.Query(name="q", sql="x", query_class="H",
                 sink=hg.Sink(format=case.sink.format, options=options))  # fmt: skip
    assert str(refused.value).startswith(f"query 'q': sink options.{name} is ")


def _options(case: Case) -> Mapping[str, Any]:
    entry = sink_entry(case.sink.format)
    assert entry is not None
    return entry.options


@pytest.mark.parametrize("name", [name for name, entry in sinks().items()
                                  if entry.options and not entry.other_options])  # fmt: skip
def test_an_unknown_option_is_refused_with_the_nearest_name(name: str) -> None:
    option = next(iter(sinks()[name].options))
    sink = hg.Sink(format=name, options={f"{option}x": "1"})
    with pytest.raises(QueryRefused) as refused:
        hg.Query(name="q", sql="x", query_class="H", sink=sink)
    assert str(refused.value).startswith(f"query 'q': sink options.{option}x is '1'.\nFix: it must")
    assert f"; did you mean '{option}'?" in str(refused.value)


def test_a_receiver_is_closed_and_opened_again_after_a_failed_delivery(
    session: SparkSession, tmp_path: File
) -> None:
    case, failures = stored(), iter([False, True, False, False, False])
    run = Run(session, tmp_path / "state", case, lambda point: None)
    assert isinstance(run.sink, Outbox)
    receiver = run.sink.receiver
    assert isinstance(receiver, Stored)
    deliver = receiver.deliver

    def fail(rows: pa.Table, key: str) -> None:
        if next(failures):
            raise ConnectionError("the line is down")
        deliver(rows, key)

    receiver.deliver = fail  # type: ignore[method-assign]
    run()
    run.end()
    keys = ["q/0-0", "q/1-1", "q/2-2"]
    assert receiver.calls == ["open", keys[0], "close", "open", *keys[1:], "close"]


def test_a_receiver_that_cannot_be_created_is_blamed_on_the_sink(session: SparkSession) -> None:
    def broken(context: SinkContext) -> Receiver:
        raise RuntimeError("no licence")

    hg.sink("broken")(broken)
    with pytest.raises(QueryRefused, match="query 'q': sink format broken cannot be created: Run"):
        refuse_sink(session, path_to(session, hg.Sink(format="broken")))


def test_the_names_of_headgates_own_sinks_are_taken() -> None:
    with pytest.raises(ConfigRefused, match=r"sink 'jdbc'.*Headgate has a sink of this name"):
        hg.sink("jdbc")(Stored)
    assert {*LEFT_OUT, *CASES} <= {*sinks()}
