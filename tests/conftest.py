"""What all tests share: a Spark session, a Kafka broker, a terminal, profiles of Hypothesis."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from kafka_broker import Broker
from kit.terminal import Terminal
from pyspark.sql import SparkSession

from headgate.spark.jvm.session import local_session

# The JVM of a test lives for seconds or minutes: Java's optimizing compiler takes too long to pay
# off. On a busy machine, a test that kills its run twice took 135 s with it and 46 s without it.
# Without it, Java reserves only 48 MB for compiled code. Hundreds of queries fill that within a
# minute, and then nothing more is compiled. Hence the larger code cache. The sizes for new objects
# and classes are there for fewer collections; their effect was not timed alone. By default, a file
# source of Structured Streaming lists its files over and over: a fifth of the samples of Java code
# while the gate of the known answers ran.
os.environ.setdefault(
    "SPARK_SUBMIT_OPTS",
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m"
    " -Xmn400m -XX:MetaspaceSize=256m -Dspark.sql.streaming.pollingDelay=100ms",
)

_NO_DEADLINE = {"deadline": None, "print_blob": True}
# A build judges a change, so it draws the same examples every time. `make test-long` draws many
# more, new ones each time, and prints how to reproduce a failure.
settings.register_profile("short", max_examples=15, derandomize=True, **_NO_DEADLINE)
settings.register_profile(
    "long", max_examples=200, suppress_health_check=[HealthCheck.too_slow], **_NO_DEADLINE
)
settings.load_profile("short")


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    state: Path = tmp_path_factory.mktemp("spark")
    session = local_session(state, "local[2]", {})
    yield session
    session.stop()


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    broker = Broker(tmp_path_factory.mktemp("kafka"))
    yield broker
    broker.stop()


@pytest.fixture(scope="session")
def terminal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    terminal = Terminal(tmp_path_factory.mktemp("terminal"))
    yield terminal
    terminal.close()
