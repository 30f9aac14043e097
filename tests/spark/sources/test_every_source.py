"""What every source must satisfy. The registry lists them, so a new one needs only its case."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from driver_reads import polled_of
from kafka_broker import Broker
from pyspark.sql import SparkSession

import headgate as hg
from headgate.errors import ConfigRefused
from headgate.extensions import Polled, Source, SourceContext, sources
from headgate.model.stream import Rows
from headgate.spark.sources.stream_source import polled_source, source_of

pytestmark = pytest.mark.spark

NUMBERS = [{"n": number} for number in range(6)]
Row = Mapping[str, Any]


@hg.source("counted", options={"end": "the number to stop at"}, columns="n BIGINT",
           check=lambda options: options.whole("end", 6, least=1))  # fmt: skip
class Counted(Source):
    """The numbers from 0 on, two per poll: a source as a user writes it."""

    def __init__(self, context: SourceContext) -> None:
        self._schema, self._end = context.schema, context.options.whole("end", 6)
        self._next = 0

    def resume(self, position: Mapping[str, str]) -> None:
        self._next = int(position.get("next", "0"))

    def poll(self) -> Polled | None:
        rows = [{"n": n} for n in range(self._next, min(self._next + 2, self._end))]
        position = {"next": str(self._next + len(rows))}
        return Polled(pa.Table.from_pylist(rows, schema=self._schema), position) if rows else None

    def taken(self, polled: Polled) -> None:
        self._next = int(polled.position["next"])


@dataclass(frozen=True)
class Case:
    """A stream of a format whose source has six tuples, and what is wrong with another one.

    Args:
        refused: an option that is refused, with its value.
        row: returns what is compared of a tuple; a generated tuple contains the time.
    """

    stream: hg.Stream
    refused: tuple[str, str]
    rows: Rows | None = None
    expected: list[Row] | None = None
    row: Callable[[Row], Row] = lambda row: row


def directory(kind: str, folder: Path, write: Callable[[Path, list[Row]], object]) -> Case:
    folder.mkdir()
    for number in range(3):
        write(folder / f"{number}.{kind}", list(NUMBERS[2 * number : 2 * number + 2]))
    options = {"path": str(folder), "maxFilesPerTrigger": "1"}
    stream = hg.Stream(name="s", format=kind, options=options, schema="n BIGINT")
    return Case(stream, ("maxFilesPerTrigger", "few"), expected=[*NUMBERS])


def json_lines(file: Path, rows: list[Row]) -> None:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))


def csv_lines(file: Path, rows: list[Row]) -> None:
    file.write_text("".join(f"{row['n']}\n" for row in rows))


def parquet(file: Path, rows: list[Row]) -> None:
    pq.write_table(pa.Table.from_pylist(rows), file)


def kafka(request: pytest.FixtureRequest) -> Case:
    broker: Broker = request.getfixturevalue("broker")
    topic = broker.new_topic(2)
    broker.produce(topic, [{"value": str(row["n"]).encode(), "partition": 0} for row in NUMBERS])
    options = broker.source(topic, maxOffsetsPerTrigger="2")
    stream = hg.Stream(name="s", format="kafka", options=options, ingest="driver")
    return Case(stream, ("maxOffsetsPerTrigger", "many"), expected=[*NUMBERS],
                row=lambda row: {"n": int(row["value"])})  # fmt: skip


def generator() -> Case:
    options = {"rate_per_s": "1000000", "tuples": "6", "seed": "1"}
    stream = hg.Stream(name="s", format="headgate", options=options)
    return Case(
        stream, ("rate_per_s", "fast"),
        row=lambda row: {key: value for key, value in row.items() if key != "ts"},
    )  # fmt: skip


def python() -> Case:
    options = {"rowsPerPoll": "2"}
    stream = hg.Stream(name="s", format="python", options=options, schema="n BIGINT")
    return Case(stream, ("rowsPerPoll", "no"), lambda first: iter(NUMBERS[first:]), [*NUMBERS])


CASES: dict[str, Callable[[pytest.FixtureRequest, Path], Case]] = {
    "parquet": lambda request, folder: directory("parquet", folder, parquet),
    "json": lambda request, folder: directory("json", folder, json_lines),
    "csv": lambda request, folder: directory("csv", folder, csv_lines),
    "kafka": lambda request, folder: kafka(request),
    "headgate": lambda request, folder: generator(),
    "python": lambda request, folder: python(),
    "counted": lambda request, folder: Case(
        hg.Stream(name="s", format="counted"), ("end", "0"), expected=[*NUMBERS]
    ),
}
EVERY = sorted(sources())


@pytest.fixture(params=EVERY)
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Case:
    assert request.param in CASES, f"add a case for the source {request.param} to this file"
    return CASES[request.param](request, tmp_path / "source")


class Reader:
    """A source as the poller uses it, with its journaled position and tuples in memory."""

    def __init__(self, session: SparkSession, case: Case) -> None:
        self._session, self._case = session, case
        self._schema = source_of(session, case.stream).schema
        self.position: dict[str, str] = {}
        self.rows: list[Row] = []
        self.source: Source | None = None

    def start(self) -> None:
        """Start as after a crash: only what was journaled is known."""
        if self.source is not None:
            self.source.close()
        self.source = polled_source(self._session, self._case.stream, self._schema, self._case.rows)
        self.source.resume(dict(self.position))

    def poll(self) -> Polled:
        """Poll until tuples come; what has none is only a position, and is taken at once."""
        while not (polled := polled_of(self.source)).table.num_rows:
            self.take(polled)
        return polled

    def rows_of(self, polled: Polled) -> list[Row]:
        return [self._case.row(row) for row in polled.table.to_pylist()]

    def journal(self, polled: Polled) -> None:
        self.position |= polled.position
        self.rows += self.rows_of(polled)

    def take(self, polled: Polled) -> None:
        self.journal(polled)
        assert self.source is not None
        self.source.taken(polled)

    def close(self) -> None:
        assert self.source is not None
        self.source.close()


def all_rows(session: SparkSession, case: Case) -> list[Row]:
    reader = Reader(session, case)
    reader.start()
    while len(reader.rows) < len(NUMBERS):
        reader.take(reader.poll())
    reader.close()
    return reader.rows


def test_tuples_come_again_until_they_are_taken(session: SparkSession, case: Case) -> None:
    reader = Reader(session, case)
    reader.start()
    while len(reader.rows) < len(NUMBERS):
        first = reader.poll()
        again = reader.poll()
        assert reader.rows_of(again)[: first.table.num_rows] == reader.rows_of(first)
        reader.take(again)
    assert case.expected is None or reader.rows == case.expected
    assert reader.source is not None
    assert [reader.source.poll() for _ in range(3)] == [None] * 3
    reader.close()


@pytest.mark.parametrize("is_taken", [True, False], ids=["taken", "journaled, not taken"])
def test_a_source_resumes_exactly_after_what_is_journaled(
    session: SparkSession, case: Case, is_taken: bool
) -> None:
    reader = Reader(session, case)
    while len(reader.rows) < len(NUMBERS):
        reader.start()
        polled = reader.poll()
        if is_taken:
            reader.take(polled)
        else:
            reader.journal(polled)
    reader.close()
    assert reader.rows == all_rows(session, case)


def test_what_was_polled_and_not_journaled_comes_after_a_restart(
    session: SparkSession, case: Case
) -> None:
    reader = Reader(session, case)
    reader.start()
    lost = reader.rows_of(reader.poll())
    reader.start()
    polled = reader.poll()
    rows = reader.rows_of(polled)
    shorter = min(len(lost), len(rows))
    assert rows[:shorter] == lost[:shorter]
    reader.close()


def test_a_wrong_value_is_refused_with_the_stream_and_the_option(
    session: SparkSession, case: Case
) -> None:
    name, value = case.refused
    stream = hg.Stream(
        name="s", format=case.stream.format, options={**case.stream.options, name: value},
        schema=case.stream.schema, ingest=case.stream.ingest,
    )  # fmt: skip
    with pytest.raises(ConfigRefused) as refused:
        source_of(session, stream)
    assert str(refused.value).startswith("stream 's': ")
    assert name in str(refused.value)


@pytest.mark.parametrize("name", [name for name, entry in sources().items()
                                  if not entry.other_options])  # fmt: skip
def test_an_unknown_option_is_refused_with_the_nearest_name(
    session: SparkSession, name: str
) -> None:
    option = next(iter(sources()[name].options))
    options = {f"{option}x": "1"}  # a required option that is missing comes second
    with pytest.raises(ConfigRefused) as refused:
        source_of(session, hg.Stream(name="s", format=name, options=options, schema="n BIGINT"))
    assert str(refused.value).startswith(f"stream 's': options.{option}x is '1', but must be left")
    assert f"; did you mean '{option}'?" in str(refused.value)


def test_an_unknown_format_is_refused_with_the_nearest_name(session: SparkSession) -> None:
    with pytest.raises(ConfigRefused, match=r"stream 's': source is 'kafak'.*mean 'kafka'\?"):
        source_of(session, hg.Stream(name="s", format="kafak"))


def test_a_source_that_only_the_driver_knows_cannot_be_left_to_spark(session: SparkSession) -> None:
    with pytest.raises(ConfigRefused, match="ingest is 'spark', but must be auto or driver"):
        source_of(session, hg.Stream(name="s", format="counted", ingest="spark"))
    with pytest.raises(ConfigRefused, match="left out: a source of format counted has the columns"):
        source_of(session, hg.Stream(name="s", format="counted", schema="n INT"))
    with pytest.raises(ConfigRefused, match="schema must be given for format 'python'"):
        source_of(session, hg.Stream(name="s", format="python"))


def test_a_source_that_cannot_be_created_is_blamed_on_the_stream(session: SparkSession) -> None:
    def broken(context: SourceContext) -> Source:
        raise RuntimeError("no licence")

    hg.source("broken", columns="n BIGINT")(broken)
    stream = hg.Stream(name="s", format="broken")
    with pytest.raises(ConfigRefused, match=r"stream 's': source is 'broken'.* created: RuntimeE"):
        polled_source(session, stream, source_of(session, stream).schema)


def test_the_names_of_headgates_own_sources_are_taken() -> None:
    with pytest.raises(ConfigRefused, match=r"source 'kafka'.*Headgate has a source of this name"):
        hg.source("kafka")(Counted)
    assert list(islice(sources(), 6)) == ["parquet", "json", "csv", "kafka", "headgate", "python"]
