"""The driver reads from a topic what was produced, record by record, from a real broker."""

import json
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from kafka_broker import Broker, jar, jars, produce
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from headgate.errors import ConfigRefused, RecordsLost
from headgate.extensions import Polled
from headgate.model.stream import Stream
from headgate.spark.jvm.types import arrow_schema
from headgate.spark.sources import kafka as kafka_source
from headgate.spark.sources.kafka import KafkaSource
from headgate.spark.sources.kafka_options import COLUMNS, HEADERS, Subscription, subscription_of
from headgate.spark.sources.stream_source import source_of

pytestmark = [pytest.mark.spark, pytest.mark.slow]

CONNECTOR = (
    "org/apache/spark/spark-sql-kafka-0-10_2.13/4.2.0/spark-sql-kafka-0-10_2.13-4.2.0.jar",
    "64539c45e5d39f7ddb747312c239f38f5208d08c1a0ddf7d70beb2fbd9373705",
)
Row = dict[str, Any]
Record = Mapping[str, Any]


class Reader:
    """A source, with its journalled position and its rows in memory."""

    def __init__(self, spark: SparkSession, broker: Broker, topics: str, **options: str) -> None:
        source_options = {**broker.source(topics), **options}
        self.stream = Stream(name="s", format="kafka", options=source_options)
        self.schema = source_of(spark, self.stream).schema
        self.position: dict[str, str] = {}
        self.rows: list[Row] = []
        self.start()

    def start(self, **options: str) -> None:
        """Start as after a crash: only what was journalled is known."""
        source_options = {**self.stream.options, **options}
        subscription = subscription_of("s", source_options)
        assert isinstance(subscription, Subscription), subscription
        self.source = KafkaSource(subscription, arrow_schema(self.schema))
        self.source.resume(self.position)

    def take(self, polled: Polled) -> None:
        self.position |= polled.position
        self.rows += polled.table.to_pylist()
        self.source.taken(polled)

    def until(self, done: Any, deadline_s: float = 20.0) -> None:
        ends_at_s = time.monotonic() + deadline_s
        while not done():
            assert time.monotonic() < ends_at_s, (
                f"timed out: {self.position}, {len(self.rows)} rows"
            )
            if (polled := self.source.poll()) is not None:
                self.take(polled)
            time.sleep(0.005)

    def read(self, rows: int) -> list[Row]:
        """Read until there are so many rows, and a little longer."""
        self.until(lambda: len(self.rows) >= rows)
        ends_at_s = time.monotonic() + 0.2
        self.until(lambda: time.monotonic() > ends_at_s)
        return self.rows


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_source, "LOOK_S", 0.1)


@pytest.fixture
def topic(broker: Broker) -> Iterator[str]:
    name = broker.new_topic()
    yield name
    if name in broker.admin.list_topics(timeout=10).topics:
        broker.delete(name)


def _numbers(first: int, end: int, **more: Any) -> list[Record]:
    return [{"value": str(number).encode(), **more} for number in range(first, end)]


def _read(rows: list[Row]) -> list[int]:
    return sorted(int(row["value"]) for row in rows)


def _expected(produced: list[Row], kind: int = 0) -> list[Row]:
    """Return the rows that Spark's Kafka source documents for what was produced."""
    return [
        {
            **{name: row[name] for name in ("key", "value", "topic", "partition", "offset")},
            "timestamp": datetime(1970, 1, 1, tzinfo=UTC)
            + timedelta(milliseconds=row["timestamp_ms"]),
            "timestampType": kind,
        }
        for row in produced
    ]


def _by_offset(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (row["topic"], row["partition"], row["offset"]))


def test_every_record_comes_as_it_was_produced(spark: SparkSession, broker: Broker) -> None:
    one, other = broker.create("one", 3), broker.create("other", 2)
    odd: list[Record] = [
        {"key": None, "value": None}, {"key": b"", "value": b""}, {"key": b"k", "value": None},
        {"value": "Grüße ☃".encode(), "timestamp": 1}, {"value": b"\x00\xff", "timestamp": 2**40},
    ]  # fmt: skip
    produced = broker.produce(one, [{**record, "partition": n} for record in odd for n in range(3)])
    produced += broker.produce(other, _numbers(0, 500))
    reader = Reader(spark, broker, " one, other")
    assert reader.source.poll() is None  # it has asked the broker, and does not wait
    rows = reader.read(len(produced))
    assert _by_offset(rows) == _by_offset(_expected(produced))
    assert reader.schema == spark.createDataFrame([], COLUMNS).schema


def test_columns_are_those_that_sparks_own_source_gives(spark: SparkSession) -> None:
    jvm: Any = spark.sparkContext._jvm
    urls = spark.sparkContext._gateway.new_array(jvm.java.net.URL, 2)  # type: ignore[union-attr]
    clients = next(file for file in jars() if "kafka-clients" in file.name)
    for number, file in enumerate((jar(*CONNECTOR), clients)):
        urls[number] = jvm.java.net.URI(file.as_uri()).toURL()
    loader = jvm.java.net.URLClassLoader(urls, jvm.Thread.currentThread().getContextClassLoader())
    source = loader.loadClass("org.apache.spark.sql.kafka010.KafkaRecordToRowConverter")
    (method,) = (
        candidate for candidate in source.getMethods() if candidate.getName() == "kafkaSchema"
    )
    arguments = spark.sparkContext._gateway.new_array(jvm.Object, 1)  # type: ignore[union-attr]
    for headers, columns in ((False, COLUMNS), (True, COLUMNS + HEADERS)):
        arguments[0] = headers
        schema = json.loads(method.invoke(None, arguments).json())
        assert StructType.fromJson(schema) == spark.createDataFrame([], columns).schema


def test_headers_and_the_time_of_the_broker(spark: SparkSession, broker: Broker) -> None:
    topic = broker.create("headed", message_timestamp_type="LogAppendTime")
    headers = [[("a", b"1"), ("a", None), ("ü", b"")], None]
    began_s = time.time()
    broker.produce(
        topic, [{"value": b"x", "headers": record_headers} for record_headers in headers]
    )
    reader = Reader(spark, broker, topic, includeHeaders="true")
    rows = reader.read(2)
    first = [{"key": "a", "value": b"1"}, {"key": "a", "value": None}, {"key": "ü", "value": b""}]
    assert [row["headers"] for row in rows] == [first, None]
    assert [row["timestampType"] for row in rows] == [1, 1]
    assert all(abs(row["timestamp"].timestamp() - began_s) < 20 for row in rows)
    assert reader.schema == spark.createDataFrame([], COLUMNS + HEADERS).schema


def test_what_was_not_journalled_comes_again_and_nothing_twice(
    spark: SparkSession, broker: Broker, topic: str
) -> None:
    broker.produce(topic, _numbers(0, 300))
    reader = Reader(spark, broker, topic, maxOffsetsPerTrigger="70")
    while len(reader.rows) < 140:
        polled = reader.source.poll()
        if polled is not None:
            assert polled.table.num_rows <= 70
            assert reader.source.poll() is polled
            reader.take(polled)
    while (untaken := reader.source.poll()) is None or not untaken.table.num_rows:
        continue
    reader.start()  # it was never journalled
    assert _read(reader.read(300)) == list(range(300))


def test_latest_begins_behind_what_is_there_and_only_once(
    spark: SparkSession, broker: Broker, topic: str
) -> None:
    broker.produce(topic, _numbers(0, 10))
    reader = Reader(spark, broker, topic, startingOffsets="latest")
    reader.until(lambda: f"{topic}/0" in reader.position)
    reader.start()  # before the first record that it should read
    broker.produce(topic, _numbers(10, 20))
    reader.start()
    assert _read(reader.read(10)) == list(range(10, 20))


def test_partitions_and_topics_that_appear_later_come_whole(
    spark: SparkSession, broker: Broker, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    later = f"{topic}-later"
    reader = Reader(spark, broker, f"{topic},{later}", startingOffsets="latest")
    reader.until(lambda: f"{topic}/0" in reader.position)
    assert caplog.text.count(f"stream 's' waits for topic {later}") == 1
    broker.widen(topic, 3)
    broker.produce(topic, _numbers(0, 10, partition=2))
    broker.create(later)
    broker.produce(later, _numbers(10, 20))
    broker.produce(topic, _numbers(20, 30, partition=0))
    assert _read(reader.read(30)) == list(range(30))
    reader.start()
    broker.produce(topic, _numbers(30, 40, partition=1))
    assert _read(reader.read(40)) == list(range(40))


def test_a_topic_that_is_left_out_for_a_while_goes_on_where_it_stood(
    spark: SparkSession, broker: Broker, topic: str
) -> None:
    other = broker.create(f"{topic}-other")
    reader = Reader(spark, broker, f"{topic},{other}")
    for name, first in ((topic, 0), (other, 10)):
        broker.produce(name, _numbers(first, first + 10))
    reader.read(20)
    reader.start(subscribe=other)
    for name, first in ((topic, 20), (other, 30)):
        broker.produce(name, _numbers(first, first + 10))
    assert _read(reader.read(30)) == [*range(20), *range(30, 40)]
    reader.start()
    assert _read(reader.read(40)) == list(range(40))


def test_records_of_a_transaction_that_failed_come_as_the_isolation_says(
    spark: SparkSession, broker: Broker, topic: str
) -> None:
    producer = broker.transactions(topic)
    for first, commits in ((0, True), (10, False), (20, True)):
        producer.begin_transaction()
        produce(producer, topic, _numbers(first, first + 10))
        (producer.commit_transaction if commits else producer.abort_transaction)(20)
    every = Reader(spark, broker, topic)
    assert _read(every.read(30)) == list(range(30))
    committed = Reader(spark, broker, topic, **{"kafka.isolation.level": "read_committed"})
    assert _read(committed.read(20)) == [*range(10), *range(20, 30)]


@pytest.mark.long
def test_a_broker_that_was_away_is_asked_again(
    spark: SparkSession, broker: Broker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_source, "ANSWER_S", 0.5)
    broker.produce(topic, _numbers(0, 10))
    reader = Reader(spark, broker, topic)
    reader.read(10)
    broker.kill()
    try:
        with pytest.raises(OSError, match=f"{broker.servers}: .*(refused|Disconnected|Timed out)"):
            reader.until(lambda: False)
    finally:
        broker.start_again()
    broker.produce(topic, _numbers(10, 20))
    while len(reader.rows) < 20:
        try:
            reader.read(20)
        except OSError:
            time.sleep(0.05)
    assert _read(reader.read(20)) == list(range(20))


def test_records_that_are_gone_end_the_stream_or_are_told_of(
    spark: SparkSession, broker: Broker, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    broker.produce(topic, _numbers(0, 10))
    reader = Reader(spark, broker, topic)
    reader.read(10)
    broker.produce(topic, _numbers(10, 30))
    broker.forget(topic, 25)
    reader.start()
    with pytest.raises(RecordsLost) as lost:
        reader.until(lambda: False)
    assert str(lost.value) == (
        f"stream 's' stopped: 15 records of {topic}/0 were deleted before they were read: the next"
        " offset to read was 10, but the first one left is 25.\nTuples that had arrived are"
        " processed. Fix: to continue without the lost records, set the stream's option"
        " failOnDataLoss to false and start again; to lose no more, let the topic keep its records"
        " for longer."
    )
    reader.start(failOnDataLoss="false")
    assert _read(reader.read(15)) == [*range(10), *range(25, 30)]
    assert caplog.text.count(f"stream 's' goes on, though 15 records of {topic}/0 were") == 1


def test_a_topic_with_the_name_of_another_is_no_continuation(
    spark: SparkSession, broker: Broker, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    broker.produce(topic, _numbers(0, 10))
    reader = Reader(spark, broker, topic)
    reader.read(10)
    broker.delete(topic)
    with pytest.raises(RecordsLost, match=f"{topic}/0 was deleted"):
        reader.until(lambda: False)
    reader.start(failOnDataLoss="false")
    reader.until(lambda: reader.position[f"{topic}/0"] == "")
    while topic in broker.admin.list_topics(timeout=10).topics:
        time.sleep(0.05)
    broker.create(topic)
    broker.produce(topic, _numbers(10, 40))  # beyond the old position
    assert _read(reader.read(40)) == list(range(40))
    reader.start()
    broker.delete(topic)
    broker.create(topic)
    broker.produce(topic, _numbers(0, 50))
    # The brokers are asked every second: meanwhile the client may read on, up to record 50.
    with pytest.raises(RecordsLost, match=r"created again; the next offset to read was (30|50)"):
        reader.until(lambda: False)


SERVERS = {"kafka.bootstrap.servers": "127.0.0.1:1"}


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"subscribePattern": "t.*"}, "option subscribepattern"),
        ({"assign": '{"t": [0]}'}, "option assign"),
        ({"startingOffsets": '{"t": {"0": 5}}'}, 'startingOffsets {"t": {"0": 5}}'),
        ({"startingTimestamp": "5"}, "option startingtimestamp"),
        ({"minPartitions": "5"}, "option minpartitions"),
        ({"maxOffsetsPerTrigger": "many"}, "maxOffsetsPerTrigger many"),
        ({"kafka.auto.offset.reset": "latest"}, "kafka.auto.offset.reset cannot be set"),
        ({"kafka.key.deserializer": "X"}, "kafka.key.deserializer cannot be set"),
        ({"kafka.sasl.jaas.config": "x"}, "Java JAAS configuration is not supported"),
        ({"kafka.ssl.truststore.location": "x"}, "Java TrustStores are not supported"),
        ({"kafka.default.api.timeout.ms": "9"}, "No such configuration property"),
        ({"subscribe": " , "}, "needs kafka.bootstrap.servers and subscribe"),
    ],
)
def test_what_the_client_does_not_know_is_left_to_structured_streaming(
    spark: SparkSession, options: dict[str, str], reason: str
) -> None:
    source_options = {**SERVERS, "subscribe": "t", **options}
    answer = subscription_of("s", source_options)
    assert isinstance(answer, str)
    assert reason in answer
    with pytest.raises(ConfigRefused, match=r"ingest is 'driver'.* auto or spark: ") as refused:
        source_of(spark, Stream(name="s", format="kafka", options=source_options, ingest="driver"))
    assert reason in str(refused.value)


def test_columns_are_known_without_the_connector_and_cannot_be_chosen(spark: SparkSession) -> None:
    source_options = {**SERVERS, "SUBSCRIBE": "t", "kafka.client.id": "mine"}
    for ingest in ("auto", "driver"):
        stream = Stream(name="s", format="kafka", options=source_options, ingest=ingest)  # type: ignore[arg-type]
        assert source_of(spark, stream).columns[:3] == ["key", "value", "topic"]
    with pytest.raises(
        ConfigRefused, match="left out: a source of format kafka has the columns key"
    ):
        source_of(spark, Stream(name="s", format="kafka", options=source_options, schema="a INT"))
    with pytest.raises(ConfigRefused, match="own client cannot, it does not know the option assig"):
        source_of(spark, Stream(name="s", format="kafka", options={**SERVERS, "assign": "{}"}))
