"""Kafka topics that the driver polls itself, through the client of librdkafka."""

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
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # it does not define __all__
    AdminClient,
    OffsetSpec,
)

from headgate.errors import RecordsLost
from headgate.extensions import Polled, Source
from headgate.spark.sources.kafka_options import Subscription, reason_of

log = logging.getLogger("headgate.spark")

LOOK_S = 1.0
"""How often the brokers are asked for new topics and partitions."""

ANSWER_S = 5.0
"""How long the brokers may take to answer that."""

BEGUN = "begun/"
"""The key of a position which records that startingOffsets has been applied."""

EARLIEST: OffsetSpec = OffsetSpec.earliest()  # type: ignore[no-untyped-call]  # the client's
LATEST: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # have no types

Place = tuple[str, int]
"""A topic and one of its partitions."""


class KafkaSource(Source):
    """Records of topics, read from journaled offsets; no consumer group stores our position.

    Topics and partitions that appear later are read from their first record. Brokers that do not
    answer are asked again. Records that were deleted before we read them end the stream, unless the
    option failOnDataLoss is false.
    """

    def __init__(self, subscription: Subscription, schema: pa.Schema) -> None:
        self._subscription, self._schema = subscription, schema
        client = subscription.client
        committed = client["isolation.level"] == "read_committed"
        self._level = (
            IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
        )
        self._client_error = ""
        self._consumer = Consumer({**client, "error_cb": self._note_error})
        self._admin = AdminClient(client)
        self._next: dict[Place, int] = {}
        self._ids: dict[str, str] = {}
        self._begun = False
        self._must_seek = True  # whether the consumer's position differs from ours
        self._out_of_range: set[Place] = set()
        self._missing_topics: set[str] = set()
        self._lookup: Generator[None, None, Polled | None] | None = None
        self._lookup_at_s = 0.0
        self._trouble = ""
        self._last: Polled | None = None

    def resume(self, position: Mapping[str, str]) -> None:
        self._next, self._ids, self._begun = {}, {}, False
        self._note(position)

    def poll(self) -> Polled | None:
        if self._last is None:
            self._last = self._continue_lookup()
        if self._last is None:
            self._last = self._fetch()
        if self._last is None and self._trouble:
            raise OSError(self._trouble)
        return self._last

    def taken(self, polled: Polled) -> None:
        self._note(polled.position)
        self._last = None

    @property
    def is_empty(self) -> bool:
        """Return False: records may be on their way from the brokers."""
        return False

    def close(self) -> None:
        self._consumer.close()

    def _note(self, position: Mapping[str, str]) -> None:
        """Adopt a position. A partition has the key TOPIC/NUMBER, and no value if it is gone."""
        for key, value in position.items():
            topic, _, number = key.partition("/")
            if key == BEGUN:
                self._begun = True
            elif topic not in self._subscription.topics:
                continue  # the stream no longer subscribes to it
            elif not number:
                self._ids[topic] = value
            elif value:
                self._next[topic, int(number)] = int(value)
            else:
                self._next.pop((topic, int(number)), None)

    def _note_error(self, error: KafkaError) -> None:
        self._client_error = error.str()

    def _continue_lookup(self) -> Polled | None:
        """Continue the lookup of partitions at the brokers, without waiting for their answers."""
        if self._lookup is None and time.monotonic() >= self._lookup_at_s:
            self._lookup = self._look_up_partitions()
        if self._lookup is None:
            return None
        polled, lookup, self._lookup = None, self._lookup, None
        try:
            next(lookup)
            self._lookup = lookup
            return None
        except StopIteration as end:
            polled, self._trouble = end.value, ""
        except KafkaException as error:
            servers = self._subscription.client["bootstrap.servers"]
            self._trouble = f"{servers}: {self._client_error or reason_of(error)}"
        self._client_error = ""
        # If partitions are gone, others may have replaced them already.
        self._lookup_at_s = time.monotonic() + (LOOK_S if polled is None else 0.0)
        return polled

    def _look_up_partitions(self) -> Generator[None, None, Polled | None]:
        """Return where to begin in new partitions, and where to go on where records are lost.

        Yield as long as the brokers have not answered.
        """
        ids: dict[str, str] = {}
        present: set[Place] = set()
        answers = self._admin.describe_topics(
            TopicCollection(list(self._subscription.topics)), request_timeout=ANSWER_S
        )
        yield from _wait_for(answers.values())
        for topic, answer in answers.items():
            try:
                described = answer.result()
            except KafkaException as error:
                if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                    raise
                self._note_missing(topic)
                continue
            self._missing_topics.discard(topic)
            ids[topic] = str(described.topic_id)
            present |= {(topic, partition.id) for partition in described.partitions}
        position = {
            topic: new_id for topic, new_id in ids.items() if self._ids.get(topic) != new_id
        }
        recreated = {topic for topic in position if topic in self._ids}
        gone = {place for place in self._next if place not in present or place[0] in recreated}
        for place in sorted(gone):
            self._lose(place, None, None)
            position[_key(place)] = ""
        out_of_range = sorted(self._out_of_range & self._next.keys() - gone)
        first = yield from self._offsets(out_of_range, EARLIEST)
        end = yield from self._offsets(out_of_range, LATEST)
        for place in out_of_range:
            if not first[place] <= self._next[place] <= end[place]:
                self._lose(place, first[place], end[place])
                position[_key(place)] = str(first[place])
        new = sorted(present - self._next.keys())
        begins = self._subscription.latest and not self._begun
        spec = LATEST if begins else EARLIEST
        starts = yield from self._offsets(new, spec)
        position |= {_key(place): str(offset) for place, offset in starts.items()}
        if not self._begun:
            position[BEGUN] = "latest" if self._subscription.latest else "earliest"
        if position or self._out_of_range:
            self._out_of_range, self._must_seek = set(), True
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
        yield from _wait_for(answers.values())
        return {
            (partition.topic, partition.partition): answer.result().offset
            for partition, answer in answers.items()
        }

    def _note_missing(self, topic: str) -> None:
        if topic not in self._missing_topics:
            self._missing_topics.add(topic)
            log.warning("stream '%s' waits for topic %s", self._subscription.stream, topic)

    def _lose(self, place: Place, first: int | None, end: int | None) -> None:
        lost = RecordsLost(
            stream=self._subscription.stream, place=_key(place), expected=self._next[place],
            first=first, end=end,
        )  # fmt: skip
        if self._subscription.fails_on_data_loss:
            raise lost
        log.warning("stream '%s' goes on, though %s", self._subscription.stream, lost.cause)

    def _fetch(self) -> Polled | None:
        """Return the records that the client has received in the meantime."""
        if self._must_seek:
            places = [TopicPartition(*place, offset) for place, offset in self._next.items()]
            self._consumer.assign(places)
        self._must_seek = True  # an error before the records are in a table must not lose them
        records: list[Message] = []
        ends: dict[Place, int] = {}
        for message in self._consumer.consume(self._subscription.most, timeout=0):
            place = (str(message.topic()), int(message.partition() or 0))
            error = message.error()
            offset = int(message.offset() or 0)
            if error is None:
                if offset < self._next.get(place, offset + 1):
                    continue  # its partition is gone
                records.append(message)
                ends[place] = offset + 1
            elif error.code() == KafkaError._AUTO_OFFSET_RESET:
                self._out_of_range.add(place)
                self._lookup_at_s = 0.0
            else:
                self._client_error = error.str()
        position = {_key(place): str(end) for place, end in ends.items()}
        polled = Polled(self._table(records), position) if records else None
        self._must_seek = False
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
            # In the client 0 means "not available"; in Spark it is −1.
            "timestampType": [kind - 1 for kind, _ in stamps],
        }
        if "headers" in self._schema.names:
            header_lists: list[Any] = [record.headers() for record in records]
            columns["headers"] = [
                [{"key": key, "value": value} for key, value in headers] if headers else None
                for headers in header_lists
            ]
        arrays = [pa.array(columns[field.name], field.type) for field in self._schema]
        return pa.Table.from_arrays(arrays, schema=self._schema)


def _wait_for(answers: Iterable["Future[Any]"]) -> Generator[None, None, None]:
    """Yield until every answer has arrived."""
    futures = list(answers)
    while not all(future.done() for future in futures):
        yield


def _key(place: Place) -> str:
    return f"{place[0]}/{place[1]}"
