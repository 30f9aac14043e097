"""A session of our own beside that of the whole run, and timelines in memory."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from timelines import Make, World

from headgate.model.stream import Stream
from headgate.spark.jvm.session import own_session


@pytest.fixture(scope="module")
def own(spark: SparkSession) -> SparkSession:
    return own_session(spark)


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    made: list[World] = []

    def make(*streams: Stream) -> World:
        made.append(World(tmp_path / "state", *streams))
        return made[-1]

    yield make
    for each in made:
        each.journal.close()
