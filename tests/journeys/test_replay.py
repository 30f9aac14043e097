"""A recorded run on Spark can be replayed: with the same decisions, or under other policies."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from kit.gates import consume
from pyspark.sql import SparkSession
from sources import gate_over, write_readings
from typer.testing import CliRunner

from headgate import Query, replay
from headgate.cli.app import app
from headgate.model.events import PolicyChanged
from headgate.model.qos_graph import QoSGraph
from headgate.policies import policies
from headgate.runtime.recording.recordings import read_recording
from headgate.runtime.what_if.replay import decisions

pytestmark = [pytest.mark.spark, pytest.mark.slow]

QUERIES = {
    f"{letter.lower()}{number}": (
        letter,
        f"SELECT location FROM sensors WHERE temperature > {20 + 5 * number}",
    )
    for letter in "HCN"
    for number in range(3)
}
ON_SPARK = sorted(
    name
    for name, entry in policies().items()
    if "spark" in entry.engines and "query" in entry.levels
)

SHORT = ("hr", "cqc", "bsd", "edf-hr", "rr", "qos-bucketed", "top-k", "amos")
"""One policy of each kind; the others run only in the long form."""


def test_a_recorded_run_is_simulated_under_other_policies(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    offered = write_readings(source, files=6, rows=400)
    gate = gate_over(spark, tmp_path, QUERIES, policy="cqc", record=True, most_fused=2)
    gate.start()
    consume(gate, offered)
    gate.set_query("n0", query_class="H", weight=2.0)
    gate.set_query("h1", query_class="N")
    offered += write_readings(source, files=3, rows=400, first_file=6)
    consume(gate, offered)
    gate.set_query("n0", query_class="C")
    report = gate.stop()
    assert report is not None

    replayed = replay(gate.state, policies=["rr", "cqc(inner=hnr)"])
    assert [outcome.policy for outcome in replayed.reports] == ["cqc", "rr", "cqc(inner=hnr)"]
    assert replayed.measured.total.tuples_in == report.total.tuples_in == offered * len(QUERIES)
    measured = replayed.measured.total.response_s
    assert measured.count == report.total.response_s.count
    assert measured.mean == pytest.approx(report.total.response_s.mean)
    tuples_by_class = [line.tuples_in for line in report.classes]
    assert tuples_by_class == [3 * offered, 3 * offered, 3 * offered]
    assert [line.tuples_in for line in replayed.measured.classes] == tuples_by_class
    for outcome in replayed.reports:
        for simulated, real in zip(outcome.queries, report.queries, strict=True):
            assert simulated.tuples_in == real.tuples_in
            assert simulated.response_s.count == real.response_s.count
    assert replayed.same_decisions
    assert [line.name for line in replayed.calibration] == ["H", "C", "N"]
    assert all(abs(line.error) < 10 for line in replayed.calibration)
    assert read_recording(gate.state).learned

    as_json = CliRunner().invoke(app, ["replay", str(gate.state), "--policy", "rr", "--json"])
    assert as_json.exit_code == 0
    assert set(json.loads(as_json.stdout)["calibration"]) == {"H", "C", "N"}
    table = CliRunner().invoke(app, ["replay", str(gate.state), "--policy", "rr"])
    assert "calibration of class H" in table.stdout


def test_queries_that_are_cut_are_simulated_segment_by_segment(
    spark: SparkSession, tmp_path: Path
) -> None:
    offered = write_readings(tmp_path / "source", files=8, rows=200)
    sql = "SELECT upper(location) FROM sensors WHERE humidity < 60"
    gate = gate_over(spark, tmp_path, {}, policy="chain", record=True)
    for name in ("cut", "whole"):
        gate.add_query(Query(name=name, sql=sql, query_class="H", cut=name == "cut"))
    gate.start()
    consume(gate, offered)
    report = gate.stop()
    assert report is not None
    replayed = replay(gate.state, policies=["fcfs"])
    assert replayed.same_decisions
    for outcome in replayed.reports:
        for simulated, real in zip(outcome.queries, report.queries, strict=True):
            assert simulated.tuples_in == real.tuples_in
            assert simulated.response_s.count == real.response_s.count
        counts = [line.response_s.count for line in outcome.queries]
        assert len(counts) == 3  # the first segment has no result of its own
        assert sorted(counts) == [0, max(counts), max(counts)]
        assert outcome.total.response_s.mean > 0


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(SHORT, id="one of each kind"),
        pytest.param([n for n in ON_SPARK if n not in SHORT], id="others", marks=pytest.mark.long),
    ],
)
def test_told_the_same_every_policy_decides_the_same(
    spark: SparkSession, tmp_path: Path, names: Sequence[str]
) -> None:
    """Let the policies take turns in one run; a query comes while each of them decides."""
    graph = QoSGraph(((0.0, 1.0), (0.1, 1.0), (2.0, 0.0)))
    source, files = tmp_path / "source", 1
    write_readings(source, files, rows=40)
    gate = gate_over(spark, tmp_path, {}, policy="rr", record=True, most_fused=2, lane="driver")
    for name, (letter, sql) in QUERIES.items():
        gate.add_query(
            Query(name=name, sql=sql, query_class=letter, deadline_s=0.5, qos=graph, weight=2.0)
        )
    gate.start()
    consume(gate, 40)  # after this every query is measured, and the policy decides
    for policy in names:
        gate.set_policy(policy)
        for more in (3, 2):
            write_readings(source, more, rows=40, first_file=files)
            files += more
            consume(gate, 40 * files)
            if more == 3:
                name = f"late_{policy.replace('-', '_')}"
                gate.add_query(Query(name=name, sql="SELECT * FROM sensors", query_class="H"))
    gate.stop()
    recording = read_recording(gate.state)
    turns = [[call for call, _ in turn.calls] for turn in recording.turns]
    assert sum(map(len, turns)) > len(QUERIES) * len(names)
    policy = "rr"
    for turn, calls, again in zip(recording.turns, turns, decisions(recording), strict=True):
        if isinstance(turn.event, PolicyChanged):
            policy = str(turn.event.policy)
        assert calls == again, policy
