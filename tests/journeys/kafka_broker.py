"""A Kafka broker on the loopback interface, started from the jars of Maven Central."""

import hashlib
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

CENTRAL = "https://repo1.maven.org/maven2"
LOCK = Path(__file__).with_name("kafka-jars.lock")
"""Paths in the Maven repository with their SHA-256: kafka_2.13 and all its dependencies."""

QUIET = {"log_level": 0, "reconnect.backoff.max.ms": 100}
SETTINGS = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
controller.listener.names=CONTROLLER
log.dirs={folder}/data
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
auto.create.topics.enable=false
broker.session.timeout.ms=1000
broker.heartbeat.interval.ms=200
"""


def jars(lock: Path = LOCK) -> list[Path]:
    """Return the jars of a lock file; download those that the local Maven repository lacks."""
    lines = [line.split() for line in lock.read_text().splitlines()]
    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(lambda line: jar(*line), lines))


def jar(name: str, digest: str) -> Path:
    """Return a file of the local Maven repository; download it from Maven Central if missing."""
    file = Path.home() / ".m2" / "repository" / name
    if not file.exists():
        with urllib.request.urlopen(f"{CENTRAL}/{name}", timeout=60) as answer:
            content: bytes = answer.read()
        assert hashlib.sha256(content).hexdigest() == digest, f"{name} has another SHA-256"
        file.parent.mkdir(parents=True, exist_ok=True)
        partial = file.with_name(f".{file.name}.{os.getpid()}")
        partial.write_bytes(content)
        partial.replace(file)
    return file


class Broker:
    """One broker process, controlled through the Kafka client: its topics and their records."""

    def __init__(self, folder: Path) -> None:
        port, controller = _free_ports()
        self.servers = f"127.0.0.1:{port}"
        self._folder, self._settings = folder, folder / "server.properties"
        self._settings.write_text(SETTINGS.format(folder=folder, port=port, controller=controller))
        self._jars = ":".join(map(str, jars()))
        home = os.environ.get("JAVA_HOME")
        java = Path(home) / "bin" / "java" if home else Path(sys.prefix) / "java" / "bin" / "java"
        self._java = str(java) if java.exists() else shutil.which("java") or "java"
        cluster = "headgate-tests-cluster"
        self._run("kafka.tools.StorageTool", "format", "-t", cluster, "-c").wait()
        self._process = self._run("kafka.Kafka")
        self._client = {"bootstrap.servers": self.servers, **QUIET}
        self.admin = AdminClient(self._client)
        self._producer = Producer({**self._client, "linger.ms": 0})
        self._numbers = count()
        self._await()

    def _run(self, main: str, *args: str) -> "subprocess.Popen[bytes]":
        quick = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
        command = [self._java, *quick, "-cp", self._jars, main, *args, str(self._settings)]
        with (self._folder / "broker.log").open("ab") as out:
            return subprocess.Popen(command, stdout=out, stderr=out)

    def _await(self) -> None:
        ends_at_s = time.monotonic() + 30
        while True:
            try:
                self.admin.list_topics(timeout=1)
                return
            except KafkaException:
                log = self._folder / "broker.log"
                assert self._process.poll() is None, log.read_text()[-2000:]
                assert time.monotonic() < ends_at_s, log.read_text()[-2000:]

    def kill(self) -> None:
        """Kill the broker at once, as a power failure would."""
        self._process.kill()
        self._process.wait()

    def start_again(self) -> None:
        """Start the broker again with the same topics and the same port."""
        self._process = self._run("kafka.Kafka")
        self._await()

    def create(self, topic: str, partitions: int = 1, **settings: str) -> str:
        config = {name.replace("_", "."): value for name, value in settings.items()}
        self._done(self.admin.create_topics([NewTopic(topic, partitions, 1, config=config)]))
        return topic

    def new_topic(self, partitions: int = 1) -> str:
        """Create a topic with a unique name; return the name."""
        return self.create(f"t{next(self._numbers)}", partitions)

    def source(self, topics: str, **more: str) -> dict[str, str]:
        """Return the options of a stream that reads topics from their first record."""
        return {
            "kafka.bootstrap.servers": self.servers, "subscribe": topics,
            "startingOffsets": "earliest", **more,
        }  # fmt: skip

    def widen(self, topic: str, partitions: int) -> None:
        self._done(self.admin.create_partitions([NewPartitions(topic, partitions)]))

    def delete(self, topic: str) -> None:
        self._done(self.admin.delete_topics([topic]))

    def forget(self, topic: str, before: int, partition: int = 0) -> None:
        """Delete the records before an offset, as retention does."""
        self._done(self.admin.delete_records([TopicPartition(topic, partition, before)]))

    def _done(self, answers: Mapping[Any, Any]) -> None:
        for answer in answers.values():
            answer.result(timeout=20)

    def produce(self, topic: str, records: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Produce records; return them with the partition and offset that the broker assigned."""
        return produce(self._producer, topic, records)

    def records(self, topic: str) -> list[Message]:
        """Return all records of a topic."""
        partitions = self.admin.list_topics(topic, timeout=10).topics[topic].partitions
        settings = {"group.id": "records", "enable.partition.eof": True}
        consumer = Consumer({**self._client, **settings, "enable.auto.commit": False})
        consumer.assign(
            [TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in partitions]
        )
        messages: list[Message] = []
        ended = 0
        while ended < len(partitions):
            message = consumer.poll(20)
            assert message is not None, f"no record and no end of partition from {topic} in 20 s"
            error = message.error()
            if error is None:
                messages.append(message)
            else:
                assert error.code() == KafkaError._PARTITION_EOF, error
                ended += 1
        consumer.close()
        return messages

    def transactions(self, name: str) -> Producer:
        """Return a transactional producer: its records are visible once it commits."""
        producer = Producer({**self._client, "transactional.id": name})
        producer.init_transactions(20)
        return producer

    def stop(self) -> None:
        self.kill()


def produce(
    producer: Producer, topic: str, records: Iterable[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    deliveries: list[tuple[Mapping[str, Any], Message]] = []

    def note(record: Mapping[str, Any]) -> Any:
        def delivered(error: Any, message: Message) -> None:
            assert error is None, error
            deliveries.append((record, message))

        return delivered

    for record in records:
        producer.produce(topic, **record, on_delivery=note(record))
        producer.poll(0)
    assert producer.flush(20) == 0
    return [
        {
            "key": record.get("key"), "value": record.get("value"), "topic": topic,
            "partition": message.partition(), "offset": message.offset(),
            "timestamp_ms": message.timestamp()[1], "headers": record.get("headers"),
        }
        for record, message in deliveries
    ]  # fmt: skip


def _free_ports() -> tuple[int, int]:
    with socket.socket() as one, socket.socket() as other:
        one.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        return one.getsockname()[1], other.getsockname()[1]
