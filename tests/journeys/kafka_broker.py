"""A broker of Kafka on loopback, from the jars of Maven's central repository."""

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
"""Files of the repository, with their SHA-256: kafka_2.13 and all that it needs to run."""

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
    """Gives the jars of a lock; what the local Maven repository lacks is fetched once."""
    lines = [line.split() for line in lock.read_text().splitlines()]
    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(lambda line: jar(*line), lines))


def jar(name: str, digest: str) -> Path:
    """Gives one file of the local Maven repository, which has it from Maven's central one."""
    file = Path.home() / ".m2" / "repository" / name
    if not file.exists():
        with urllib.request.urlopen(f"{CENTRAL}/{name}", timeout=60) as answer:
            content: bytes = answer.read()
        assert hashlib.sha256(content).hexdigest() == digest, f"{name} is not what it was"
        file.parent.mkdir(parents=True, exist_ok=True)
        half = file.with_name(f".{file.name}.{os.getpid()}")
        half.write_bytes(content)
        half.replace(file)
    return file


class Broker:
    """One broker, asked by its client only: topics, records, and what became of them."""

    def __init__(self, folder: Path) -> None:
        port, controller = _free_ports()
        self.servers = f"127.0.0.1:{port}"
        self._folder, self._settings = folder, folder / "server.properties"
        self._settings.write_text(SETTINGS.format(folder=folder, port=port, controller=controller))
        self._jars = ":".join(map(str, jars()))
        home = os.environ.get("JAVA_HOME")
        found = Path(home) / "bin" / "java" if home else Path(sys.prefix) / "java" / "bin" / "java"
        self._java = str(found) if found.exists() else shutil.which("java") or "java"
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
        """Ends as a machine does that loses its power."""
        self._process.kill()
        self._process.wait()

    def start_again(self) -> None:
        """Starts with the topics and the port that there were."""
        self._process = self._run("kafka.Kafka")
        self._await()

    def create(self, topic: str, partitions: int = 1, **settings: str) -> str:
        config = {name.replace("_", "."): value for name, value in settings.items()}
        self._done(self.admin.create_topics([NewTopic(topic, partitions, 1, config=config)]))
        return topic

    def new_topic(self, partitions: int = 1) -> str:
        """Creates a topic with a name that no other has."""
        return self.create(f"t{next(self._numbers)}", partitions)

    def source(self, topics: str, **more: str) -> dict[str, str]:
        """Gives the options of a stream that reads topics from their first record on."""
        return {
            "kafka.bootstrap.servers": self.servers, "subscribe": topics,
            "startingOffsets": "earliest", **more,
        }  # fmt: skip

    def widen(self, topic: str, partitions: int) -> None:
        self._done(self.admin.create_partitions([NewPartitions(topic, partitions)]))

    def delete(self, topic: str) -> None:
        self._done(self.admin.delete_topics([topic]))

    def forget(self, topic: str, before: int, partition: int = 0) -> None:
        """Deletes the records before an offset, as retention does."""
        self._done(self.admin.delete_records([TopicPartition(topic, partition, before)]))

    def _done(self, answers: Mapping[Any, Any]) -> None:
        for answer in answers.values():
            answer.result(timeout=20)

    def produce(self, topic: str, records: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Produces records; gives each with the partition and offset that the broker told."""
        return produce(self._producer, topic, records)

    def records(self, topic: str) -> list[Message]:
        """Gives all that a topic has."""
        partitions = self.admin.list_topics(topic, timeout=10).topics[topic].partitions
        settings = {"group.id": "records", "enable.partition.eof": True}
        consumer = Consumer({**self._client, **settings, "enable.auto.commit": False})
        consumer.assign([TopicPartition(topic, each, OFFSET_BEGINNING) for each in partitions])
        found: list[Message] = []
        ended = 0
        while ended < len(partitions):
            message = consumer.poll(20)
            assert message is not None, f"nothing more of {topic}, and no end"
            error = message.error()
            if error is None:
                found.append(message)
            else:
                assert error.code() == KafkaError._PARTITION_EOF, error
                ended += 1
        consumer.close()
        return found

    def transactions(self, name: str) -> Producer:
        """Gives a producer whose records count when it commits."""
        producer = Producer({**self._client, "transactional.id": name})
        producer.init_transactions(20)
        return producer

    def stop(self) -> None:
        self.kill()


def produce(
    producer: Producer, topic: str, records: Iterable[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    told: list[tuple[Mapping[str, Any], Message]] = []

    def note(record: Mapping[str, Any]) -> Any:
        def delivered(error: Any, message: Message) -> None:
            assert error is None, error
            told.append((record, message))

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
        for record, message in told
    ]  # fmt: skip


def _free_ports() -> tuple[int, int]:
    with socket.socket() as one, socket.socket() as other:
        one.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        return one.getsockname()[1], other.getsockname()[1]
