"""What requests change of a run holds in the next one of the same pipeline file."""

from pathlib import Path

import pytest
from kit.waiting import until
from pyspark.sql import SparkSession

from headgate import load
from headgate.config import read_pipeline
from headgate.runtime import past_why
from headgate.server import Client
from headgate.server import control as control_file
from headgate.server.service import served

pytestmark = [pytest.mark.spark, pytest.mark.slow]

FILE = """
state: {state}
rehearsal_s: 0
policy: {{name: cqc, inner: hr}}
classes: {{H: 6, N: 1}}
streams:
  sensors:
    format: headgate
    options: {{rate_per_s: 50}}
    arrival_time: ts
queries:
  hot: {{class: H, sql: SELECT location FROM sensors WHERE temperature > 35}}
  old: {{class: N, sql: SELECT location FROM sensors}}
"""
WARM = {"class": "N", "sql": "SELECT location FROM sensors WHERE temperature > 20"}


def test_changes_last_until_they_are_undone(spark: SparkSession, tmp_path: Path) -> None:
    file, state = tmp_path / "pipeline.yaml", tmp_path / "state"
    file.write_text(FILE.format(state=state))
    pipeline = read_pipeline(file, {})
    gate = load(pipeline, spark=spark)
    gate.start()
    until(
        lambda: next(line for line in gate.report().queries if line.name == "hot").response_s.count
    )
    with served(gate, lambda: None):
        client = Client(state)
        assert client.status()["differs"] == []
        client.set_policy("fcfs")
        client.set_query("hot", {"weight": 3, "qos": [[0, 1], [2, 0]]})
        client.set_query("hot", {"class": "N"})
        client.add({"queries": {"warm": WARM}}, "more.yaml")
        client.drop("old")
        client.alter("warm", "SELECT location FROM sensors WHERE temperature > 21")
        number = next(row["number"] for row in client.ask("GET", "/changes")["changes"]
                      if row["after"] == {"class": "N"})  # fmt: skip
        client.ask("POST", f"/changes/{number}/undo")
    gate.stop()
    control_file.remove(state)
    reply = past_why(state, "hot")
    assert reply is not None
    assert reply["parts"][-1]["to"] == reply["commit"]

    again = load(pipeline, spark=spark)
    assert again.policy.name == "fcfs"
    again.start()
    try:
        status = again.status()
        assert {row["query"] for row in status["queries"]} == {"hot", "warm"}
        assert again.values_of("hot")["class"] == "H"
        assert again.values_of("hot")["weight"] == 3
        assert again.explanation("warm").sql.endswith("> 21")
        assert status["differs"] == [
            "policy is fcfs, in the file cqc(inner=hr)",
            "query hot: weight is 3.0, in the file 1.0",
            "query hot: qos is [[0.0, 1.0], [2.0, 0.0]], in the file none",
            "warm was added and is not in the file",
            "old was dropped and is in the file",
        ]
    finally:
        again.stop()
    by_option = load(pipeline, spark=spark, policy="rr")
    assert by_option.policy.name == "rr"
    by_option.stop()
