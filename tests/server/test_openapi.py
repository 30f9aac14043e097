"""The API does what its OpenAPI document says, whatever it is sent."""

from collections.abc import Iterator
from typing import Any

import pytest
from kit.gates import new_gate
from pyspark.sql import SparkSession

from headgate import Headgate, Query, Stream
from headgate.server import Control
from headgate.server import control as control_file
from headgate.server.service import served

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")
from hypothesis import HealthCheck, Phase, settings  # noqa: E402
from schemathesis.checks import not_a_server_error  # noqa: E402
from schemathesis.specs.openapi.checks import (  # noqa: E402
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

pytestmark = [pytest.mark.spark, pytest.mark.slow]

NOT_FUZZED = r"^/(stop|events|what-if|openapi.json|health|ready)$"
"""What ends the run, never ends, starts processes, or answers 503 if a fuzzed query has failed."""


@pytest.fixture(scope="module")
def control(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Headgate, Control]]:
    options = {"rate_per_s": "50"}
    stream = Stream(name="sensors", format="headgate", options=options, arrival_time="ts")
    gate = new_gate(
        spark, tmp_path_factory.mktemp("openapi"), [stream],
        [Query(name="hot", sql="SELECT location FROM sensors WHERE temperature > 35",
               query_class="H")],
        classes={"H": 6, "N": 1},
    )  # fmt: skip
    gate.start()
    try:
        with served(gate, lambda: None):
            yield gate, Control.read(gate.state)
    finally:
        gate.stop()
        control_file.remove(gate.state)


@pytest.fixture(scope="module")
def document(control: tuple[Headgate, Control]) -> Any:
    _, endpoint = control
    headers = {"Authorization": f"Bearer {endpoint.token}"}
    schema = schemathesis.openapi.from_url(f"{endpoint.address}/openapi.json", headers=headers)
    return schema.exclude(path_regex=NOT_FUZZED)


def test_every_route_is_described_and_needs_the_token(document: Any) -> None:
    paths = document.raw_schema["paths"]
    assert {"/queries", "/queries/{name}/why", "/policy", "/changes/{number}/undo"} <= {*paths}
    assert not any(path.startswith("/page") for path in paths)
    for path, operations in paths.items():
        for operation in operations.values():
            assert operation["description"]
            assert bool(operation["security"]) == (path not in ("/health", "/ready"))


lazy = schemathesis.pytest.from_fixture("document")


@lazy.parametrize()
@settings(
    max_examples=6,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_whatever_is_sent_the_answer_is_one_that_is_described(
    case: Any, control: tuple[Headgate, Control]
) -> None:
    gate, endpoint = control
    headers = {"Authorization": f"Bearer {endpoint.token}"}
    case.call_and_validate(
        headers=headers,
        checks=[
            not_a_server_error, status_code_conformance, content_type_conformance,
            response_schema_conformance,
        ],
    )  # fmt: skip
    assert gate.running
