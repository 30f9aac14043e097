"""Topics of Kafka that the driver asks itself, by the client of librdkafka."""

import logging
import time
from collections.abc import Collection, Generator, Iterable, Mapping
from concurrent.futures import Future
from typing import Any

import numpy as np
import pyarrow as pa
from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # it does not say __all__
    AdminClient,
    OffsetSpec,
)
from pyspark.sql.types import StructType

from headgate.errors import RecordsLost
from headgate.spark.jvm.types import arrow_schema
from headgate.spark.sources.kafka_options import Subscription, reason_of
from headgate.spark.sources.protocol import Polled, Source

log = logging.getLogger("headgate.spark")

LOOK_S = 1.0
"""How often the brokers are asked for topics and partitions that are new."""

ANSWER_S = 5.0
"""How long brokers may take to answer that."""

BEGUN = "begun/"
"""The position's key that tells that startingOffsets have had their effect."""

EARLIEST: OffsetSpec = OffsetSpec.earliest()  # type: ignore[no-untyped-call]  # the client's
LATEST: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # have no types

Place = tuple[str, int]
"""A topic and one of its partitions."""


class KafkaSource(Source):
    """Records of topics from journalled offsets on; no group of consumers knows where we stand.

    Topics and partitions that appear later are taken from their first record on. Brokers that
    have gone away are asked again; records that were deleted before we had them end the stream,
    unless the option failOnDataLoss is false.
    """

    def __init__(self, subscription: Subscription, schema: StructType) -> None:
        self._told, self._schema = subscription, arrow_schema(schema)
        client = subscription.client
        committed = client["isolation.level"] == "read_committed"
        self._level = (
            IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
        )
        self._heard = ""
        self._consumer = Consumer({**client, "error_cb": self._hear})
        self._admin = AdminClient(client)
        self._next: dict[Place, int] = {}
        self._ids: dict[str, str] = {}
        self._begun = False
        self._strayed = True  # whether the consumer stands elsewhere than we do
        self._lost: set[Place] = set()
        self._awaited: set[str] = set()
        self._look: Generator[None, None, Polled | None] | None = None
        self._look_at_s = 0.0
        self._trouble = ""
        self._last: Polled | None = None

    def resume(self, position: Mapping[str, str]) -> None:
        self._next, self._ids, self._begun = {}, {}, False
        self._note(position)

    def poll(self) -> Polled | None:
        if self._last is None:
            self._last = self._looked()
        if self._last is None:
            self._last = self._fetched()
        if self._last is None and self._trouble:
            raise OSError(self._trouble)
        return self._last

    def taken(self, polled: Polled) -> None:
        self._note(polled.position)
        self._last = None

    def close(self) -> None:
        self._consumer.close()

    def _note(self, position: Mapping[str, str]) -> None:
        """Stands there. A partition's key is TOPIC/NUMBER, its value empty when it is gone."""
        for key, value in position.items():
            topic, _, number = key.partition("/")
            if key == BEGUN:
                self._begun = True
            elif topic not in self._told.topics:
                continue  # nobody asks for it any more
            elif not number:
                self._ids[topic] = value
            elif value:
                self._next[topic, int(number)] = int(value)
            else:
                self._next.pop((topic, int(number)), None)

    def _hear(self, error: KafkaError) -> None:
        self._heard = error.str()

    def _looked(self) -> Polled | None:
        """Goes on with the look around at the brokers, which never waits for their answers."""
        if self._look is None and time.monotonic() >= self._look_at_s:
            self._look = self._around()
        if self._look is None:
            return None
        found, look, self._look = None, self._look, None
        try:
            next(look)
            self._look = look
            return None
        except StopIteration as end:
            found, self._trouble = end.value, ""
        except KafkaException as error:
            servers = self._told.client["bootstrap.servers"]
            self._trouble = f"{servers}: {self._heard or reason_of(error)}"
        self._heard = ""
        # Where partitions are gone, others may have taken their places already.
        self._look_at_s = time.monotonic() + (LOOK_S if found is None else 0.0)
        return found

    def _around(self) -> Generator[None, None, Polled | None]:
        """Gives where to begin in partitions that are new, and where to go on in broken ones."""
        ids: dict[str, str] = {}
        there: set[Place] = set()
        answers = self._admin.describe_topics(
            TopicCollection(list(self._told.topics)), request_timeout=ANSWER_S
        )
        yield from _answered(answers.values())
        for topic, answer in answers.items():
            try:
                described = answer.result()
            except KafkaException as error:
                if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                    raise
                self._await(topic)
                continue
            self._awaited.discard(topic)
            ids[topic] = str(described.topic_id)
            there |= {(topic, each.id) for each in described.partitions}
        position = {topic: each for topic, each in ids.items() if self._ids.get(topic) != each}
        others = {topic for topic in position if topic in self._ids}
        gone = {each for each in self._next if each not in there or each[0] in others}
        for place in sorted(gone):
            self._lose(place, None, None)
            position[_key(place)] = ""
        strayed = sorted(self._lost & self._next.keys() - gone)
        first = yield from self._offsets(strayed, EARLIEST)
        end = yield from self._offsets(strayed, LATEST)
        for place in strayed:
            if not first[place] <= self._next[place] <= end[place]:
                self._lose(place, first[place], end[place])
                position[_key(place)] = str(first[place])
        new = sorted(there - self._next.keys())
        begins = self._told.latest and not self._begun
        spec = LATEST if begins else EARLIEST
        starts = yield from self._offsets(new, spec)
        position |= {_key(place): str(offset) for place, offset in starts.items()}
        if not self._begun:
            position[BEGUN] = "latest" if self._told.latest else "earliest"
        if position or self._lost:
            self._lost, self._strayed = set(), True
        return Polled(self._schema.empty_table(), position) if position else None

    def _offsets(
        self, places: Collection[Place], spec: OffsetSpec
    ) -> Generator[None, None, dict[Place, int]]:
        if not places:
            return {}
        answers = self._admin.list_offsets(
            {TopicPartition(*place): spec for place in places},
            isolation_level=self._level, request_timeout=ANSWER_S,
        )  # fmt: skip
        yield from _answered(answers.values())
        return {(at.topic, at.partition): each.result().offset for at, each in answers.items()}

    def _await(self, topic: str) -> None:
        if topic not in self._awaited:
            self._awaited.add(topic)
            log.warning("stream '%s' waits for topic %s", self._told.stream, topic)

    def _lose(self, place: Place, first: int | None, end: int | None) -> None:
        lost = RecordsLost(
            stream=self._told.stream, place=_key(place), expected=self._next[place],
            first=first, end=end,
        )  # fmt: skip
        if self._told.fails_on_data_loss:
            raise lost
        log.warning("stream '%s' goes on, though %s", self._told.stream, lost.cause)

    def _fetched(self) -> Polled | None:
        """Gives the records that the client has brought along in the meantime."""
        if self._strayed:
            places = [TopicPartition(*place, offset) for place, offset in self._next.items()]
            self._consumer.assign(places)
        self._strayed = True  # as long as records may be lost on their way into a table
        records: list[Message] = []
        ends: dict[Place, int] = {}
        for message in self._consumer.consume(self._told.most, timeout=0):
            place = (str(message.topic()), int(message.partition() or 0))
            error = message.error()
            offset = int(message.offset() or 0)
            if error is None:
                if offset < self._next.get(place, offset + 1):
                    continue  # of a partition that is gone
                records.append(message)
                ends[place] = offset + 1
            elif error.code() == KafkaError._AUTO_OFFSET_RESET:
                self._lost.add(place)
                self._look_at_s = 0.0
            else:
                self._heard = error.str()
        position = {_key(place): str(end) for place, end in ends.items()}
        polled = Polled(self._table(records), position) if records else None
        self._strayed = False
        return polled

    def _table(self, records: list[Message]) -> pa.Table:
        stamps = [record.timestamp() for record in records]
        columns: dict[str, Any] = {
            "key": [record.key() for record in records],
            "value": [record.value() for record in records],
            "topic": [record.topic() for record in records],
            "partition": [record.partition() for record in records],
            "offset": [record.offset() for record in records],
            "timestamp": np.array([at_ms for _, at_ms in stamps], dtype=np.int64) * 1000,
            # The client counts from 0, "not available"; Spark has −1 there.
            "timestampType": [kind - 1 for kind, _ in stamps],
        }
        if "headers" in self._schema.names:
            told: list[Any] = [record.headers() for record in records]
            columns["headers"] = [
                [{"key": key, "value": value} for key, value in headers] if headers else None
                for headers in told
            ]
        arrays = [pa.array(columns[each.name], each.type) for each in self._schema]
        return pa.Table.from_arrays(arrays, schema=self._schema)


def _answered(answers: Iterable["Future[Any]"]) -> Generator[None, None, None]:
    """Stops until every answer is there."""
    waits = list(answers)
    while not all(answer.done() for answer in waits):
        yield


def _key(place: Place) -> str:
    return f"{place[0]}/{place[1]}"
