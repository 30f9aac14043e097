"""One Spark session for the whole run, and seeds that are printed."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from pyspark.sql import SparkSession

from headgate.spark.session import local_session

_UNHURRIED = {"deadline": None, "print_blob": True}
settings.register_profile("short", max_examples=50, **_UNHURRIED)
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
