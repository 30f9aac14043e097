"""Twice what can be done: memory keeps its budget, nobody starves, the critical class is first."""

import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate import Headgate, Query, Stream
from headgate.metrics.report import Report

pytestmark = [pytest.mark.spark, pytest.mark.slow]

POLICIES = ["rr", "bsd", "brt", "lsf", "fcfs", "cqc"]
# About 0.2 ms a tuple, so that eight of them are far more than a worker can do.
WORK = (
    "SELECT location, aggregate(sequence(1, 2000), 0D, (a, n) -> a + n * temperature) AS x"
    " FROM sensors WHERE temperature > {}"
)
MEMORY = 8 << 20
"""Half of it is for trains; two minutes of tuples are more than that."""


def _overloaded(
    spark: SparkSession, folder: Path, policy: str, seconds: float
) -> tuple[Headgate, Report, float]:
    """Runs eight queries on one worker under a generator; gives also the most memory in use."""
    gate = Headgate(
        spark, state=folder / policy, policy=policy, classes={"critical": 6, "other": 1}, workers=1,
        most_fused=1, rehearsal_s=0, memory_bytes=MEMORY, train_tuples=2000,
    )  # fmt: skip
    options = {"rate_per_s": "2500", "seed": "1"}
    gate.add_stream(Stream(name="sensors", format="headgate", options=options, trigger_s=0.1))
    for number in range(8):
        kind = "critical" if number < 2 else "other"
        gate.add_query(Query(name=f"q{number}", sql=WORK.format(number), query_class=kind))
    gate.start()
    ends_at_s, most = time.monotonic() + seconds, 0.0
    while time.monotonic() < ends_at_s or min(n for n, _ in gate.totals().values()) == 0:
        assert time.monotonic() < ends_at_s + 60, f"starved under {policy}: {gate.totals()}"
        most = max(most, gate.used["memory"])
        gate.wait(0.05)
    report = gate.stop()
    assert report is not None
    return gate, report, most


def _check(spark: SparkSession, folder: Path, policies: list[str], seconds: float) -> None:
    mean_s: dict[str, dict[str, float]] = {}
    for policy in policies:
        gate, report, most = _overloaded(spark, folder, policy, seconds)
        assert most <= 1.0, policy
        waiting = 0
        for name, each in gate.accounts().items():
            assert each.arrived == each.delivered + each.filtered + each.queued, name
            assert each.delivered + each.filtered > 0, f"{name} starves under {policy}"
            waiting += each.queued
        assert waiting > 0, "this was no overload"
        mean_s[policy] = {line.name: line.response_s.mean for line in report.classes}
        print(policy, {name: round(value, 2) for name, value in mean_s[policy].items()}, most)
        if seconds > 60:
            assert most > 0.45, "more trains wait than the budget has room for"
    if seconds > 60:  # before that, most of it is the first call of every query
        assert mean_s["cqc"]["critical"] < mean_s["rr"]["critical"]


def test_overload(spark: SparkSession, tmp_path: Path) -> None:
    _check(spark, tmp_path, ["rr", "cqc"], seconds=6)


@pytest.mark.long
def test_two_minutes_of_overload(spark: SparkSession, tmp_path: Path) -> None:
    _check(spark, tmp_path, POLICIES, seconds=120)
