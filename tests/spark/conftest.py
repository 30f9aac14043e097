"""A session with Headgate's settings beside the session of the run, and timelines in memory."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from timelines import Make, World

from headgate.model.stream import Stream
from headgate.spark.jvm.session import own_session


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    """Return a copy of the run's session, with Headgate's settings."""
    return own_session(spark)


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    worlds: list[World] = []

    def make(*streams: Stream) -> World:
        worlds.append(World(tmp_path / "state", *streams))
        return worlds[-1]

    yield make
    for world in worlds:
        world.journal.close()
