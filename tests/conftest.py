"""One Spark session, one broker for the whole run; short forms are the same every time."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from kafka_broker import Broker
from pyspark.sql import SparkSession

from headgate.spark.jvm.session import local_session

# Every JVM of a test lives for seconds or minutes: the compiler that takes long to make code quick
# only gets in the way. On a busy machine a run that is killed twice took 135 s with it, 46 without.
# That compiler alone has room for 48 MB of code, full after some hundred plans; then it stops.
os.environ.setdefault(
    "SPARK_SUBMIT_OPTS",
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=512m",
)

_UNHURRIED = {"deadline": None, "print_blob": True}
# A build says of a change whether it is good, so it draws the same examples every time;
# `make test-long` looks for new ones, many more, and prints how to see a failure again.
settings.register_profile("short", max_examples=25, derandomize=True, **_UNHURRIED)
settings.register_profile(
    "long", max_examples=200, suppress_health_check=[HealthCheck.too_slow], **_UNHURRIED
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
