"""One Headgate that runs, for all tests of requests."""

import threading
from collections.abc import Iterator

import pytest
from kit.control import ALL, HOT
from pyspark.sql import SparkSession

from headgate import Headgate, Query, Stream
from headgate.model.events import Event
from headgate.server import Client
from headgate.server import control as control_file
from headgate.server.service import served


@pytest.fixture(scope="package")
def stop_requested() -> threading.Event:
    """Return the event that a request to stop sets."""
    return threading.Event()


@pytest.fixture(scope="package")
def events() -> list[Event]:
    """Return the events that a listener of the run hears."""
    return []


@pytest.fixture(scope="package")
def gate(
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    stop_requested: threading.Event,
    events: list[Event],
) -> Iterator[Headgate]:
    state = tmp_path_factory.mktemp("control") / "state"
    gate = Headgate(spark, state=state, classes={"H": 6, "N": 1}, rehearsal_s=0)
    options = {"rate_per_s": "200"}
    gate.add_stream(Stream(name="sensors", format="headgate", options=options, arrival_time="ts"))
    gate.add_query(Query(name="hot", sql=HOT, query_class="H"))
    gate.add_query(Query(name="all", sql=ALL, query_class="H"))
    gate.start(listeners=[events.append])
    try:
        with served(gate, stop_requested.set):
            yield gate
    finally:
        gate.stop()
        control_file.remove(state)
    assert not (state / control_file.FILE).exists()


@pytest.fixture
def client(gate: Headgate) -> Client:
    return Client(gate.state)
