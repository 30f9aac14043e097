"""What others read: schemathesis the OpenAPI document, and a real Prometheus the figures."""

import json
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from kit.gates import new_gate
from kit.waiting import until
from pyspark.sql import SparkSession

from headgate import Headgate, Query, Stream
from headgate.server import Control
from headgate.server import control as control_file
from headgate.server.service import HEALTH, served

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")
from hypothesis import HealthCheck, Phase, given, settings  # noqa: E402
from schemathesis.checks import not_a_server_error  # noqa: E402
from schemathesis.specs.openapi.checks import (  # noqa: E402
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

pytestmark = [pytest.mark.spark, pytest.mark.slow]

MONITORING = Path(__file__).parents[2] / "examples" / "monitoring"
NOT_FUZZED = r"^/events$"
"""A stream that never ends. `/stop` is safe here, since `served` gets a function that does nothing,
and so is `/what-if`: a run that is not recorded starts no process."""


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


def test_prometheus_loads_the_rules_and_scrapes_the_run(
    control: tuple[Headgate, Control], tmp_path: Path
) -> None:
    programs = [shutil.which(name) for name in ("prometheus", "promtool")]
    if None in programs:
        pytest.skip("no Prometheus: install the Debian package `prometheus`")
    prometheus, promtool = map(str, programs)
    gate, endpoint = control
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    text = (MONITORING / "prometheus.yml").read_text()
    assert "127.0.0.1:4747" in text
    text = text.replace("127.0.0.1:4747", f"127.0.0.1:{endpoint.port}").replace("15s", "1s")
    (tmp_path / "prometheus.yml").write_text(text)
    (tmp_path / "alerts.yml").write_text((MONITORING / "alerts.yml").read_text())
    (tmp_path / "headgate-token").write_text(endpoint.read_token)
    subprocess.run(
        [promtool, "check", "config", tmp_path / "prometheus.yml"], check=True, cwd=tmp_path,
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    server = subprocess.Popen(
        [prometheus, "--config.file=prometheus.yml", "--storage.tsdb.path=data",
         f"--web.listen-address=127.0.0.1:{port}", "--log.level=error"], cwd=tmp_path,
    )  # fmt: skip
    try:

        def answer(path: str) -> Any:
            with suppress(OSError), urlopen(f"http://127.0.0.1:{port}/api/v1/{path}") as reply:
                return json.load(reply)["data"]
            return None

        query = "query?query=headgate_class_results_total"
        results = until(lambda: (data := answer(query)) and data["result"])
        assert {series["metric"]["class"] for series in results} == {"H", "N"}
        (target,) = answer("targets")["activeTargets"]
        assert (target["health"], target["lastError"]) == ("up", "")
        rules = [rule["name"] for group in answer("rules")["groups"] for rule in group["rules"]]
        assert rules == re.findall(r"- alert: (\w+)", (MONITORING / "alerts.yml").read_text())
        assert gate.running
    finally:
        server.terminate()
        server.wait()


def checks_of(path: str) -> list[Any]:
    """Return what is checked of an answer. A query that has failed makes /health answer 503."""
    checks = [status_code_conformance, content_type_conformance, response_schema_conformance]
    return checks if path in HEALTH else [not_a_server_error, *checks]


def test_whatever_is_sent_the_answer_is_one_that_is_described(
    document: Any, control: tuple[Headgate, Control]
) -> None:
    gate, endpoint = control
    headers = {"Authorization": f"Bearer {endpoint.token}"}
    operations = [result.ok() for result in document.get_all_operations()]
    paths = {operation.path for operation in operations}
    assert paths == {*document.raw_schema["paths"]} - {"/events"}
    for operation in operations:

        @settings(
            max_examples=6,
            deadline=None,
            derandomize=True,
            database=None,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy())
        def is_answered(case: Any) -> None:
            case.call_and_validate(headers=headers, checks=checks_of(case.operation.path))

        is_answered()
    assert gate.running
