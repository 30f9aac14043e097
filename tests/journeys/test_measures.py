"""A run on Spark measures delivered QoS, staleness, tardiness and bytes, as a simulation does."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from kit.networks import line, network, select
from kit.streams import file_stream
from pyspark.sql import SparkSession
from sources import balanced, consume, new_gate, write_readings

from headgate import Query
from headgate.metrics.report import Report
from headgate.model.arrays import Floats
from headgate.model.events import Event, StepFinished
from headgate.model.qos_graph import QoSGraph
from headgate.policies import policy_named
from headgate.runtime.what_if.simulate import simulation_of
from headgate.simulation.kernel.outputs import output
from headgate.simulation.loop.run_report import report_of
from headgate.workloads.testbeds.forest import SCHEMA

pytestmark = [pytest.mark.spark, pytest.mark.slow]

GRAPH = QoSGraph(((0.0, 1.0), (0.05, 1.0), (30.0, 0.0)))

QUERIES = (
    Query(name="hot", sql="SELECT * FROM sensors WHERE temperature > 20", query_class="H",
          qos=GRAPH, weight=2.0),
    Query(name="cold", sql="SELECT * FROM sensors WHERE temperature <= 20", query_class="N"),
    Query(name="means", sql="SELECT location, avg(temperature) AS t FROM sensors"
          " [RANGE 2 SECONDS SLIDE 1 SECOND] GROUP BY location", query_class="N", qos=GRAPH),
)  # fmt: skip


@pytest.fixture(scope="module")
def run(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Report, Any, Any]:
    folder = tmp_path_factory.mktemp("measures")
    stream = file_stream("sensors", folder / "source", SCHEMA, event_time="ts")
    offered = write_readings(folder / "source", files=4, rows=300)
    gate = new_gate(spark, folder, [stream], QUERIES, classes={"H": 6, "N": 1})
    events: list[Event] = []
    gate.start(listeners=[events.append])
    consume(gate, offered)
    status = gate.status()
    report = gate.stop()
    assert report is not None
    balanced(gate)
    return report, events, status


def test_every_measure_that_applies_is_a_number(run: tuple[Report, Any, Any]) -> None:
    report, *_ = run
    hot, cold, means = (query for query in report.to_dict()["queries"])
    assert 0 < hot["qos"] <= 1
    assert 0 < means["qos"] <= 1
    assert "qos" not in cold
    for query in (hot, cold, means):
        assert 0 < query["staleness"] <= 1
        assert 0 < query["weighted_staleness"] <= 1
        assert query["response_s"]["norm"] > 0
        assert query["output_per_s"] > 0
    assert "tardiness_s" not in hot
    assert 0 < means["tardiness_s"] <= means["tardiness_max_s"]
    plain = report.to_dict()
    for measure in ("utilisation", "bytes_mean", "bytes_max", "storage_s", "scheduler_s"):
        assert plain[measure] > 0, measure
    assert plain["utilisation"] <= 1
    assert plain["total"]["qos"] > 0


def test_every_call_has_its_cpu_time(run: tuple[Report, Any, Any]) -> None:
    _, events, _ = run
    times_s = [event.cpu_s for event in events if isinstance(event, StepFinished)]
    assert times_s
    assert all(cpu_s is not None and cpu_s > 0 for cpu_s in times_s)


def test_the_status_has_the_measures_that_apply(run: tuple[Report, Any, Any]) -> None:
    *_, status = run
    measures = {query["query"]: query["measures"] for query in status["queries"]}
    assert 0 < measures["hot"]["qos"] <= 1
    assert {"staleness", "staleness_expected", "tardiness_s"} <= measures["means"].keys()
    assert measures["cold"].keys().isdisjoint({"qos", "tardiness_s"})


def simulated(
    events: list[Event], seconds_of: Callable[[StepFinished], Sequence[Floats]], *, by_clock: bool
) -> tuple[Report, list[float]]:
    """Feed the simulation's accumulators with what a run has measured.

    Returns its report, and the seconds that each query's output was stale.

    Args:
        seconds_of: for each unit of a call, the seconds from the arrival of each result to its end.
        by_clock: whether results are those of windows by time, whose responses are their tardiness.
    """
    paths = (line(query.name, select(0.001), qos=query.qos) for query in QUERIES)
    simulation = simulation_of(
        network(*paths), {"s": np.array([0.0])}, policy_named("fcfs"), seed=1
    )  # fmt: skip
    world = simulation.world
    periods: dict[int, list[tuple[float, float]]] = defaultdict(list)
    first_s = events[0].at_s
    for event in events:
        if isinstance(event, StepFinished):
            for unit, seconds in zip(event.call.units, seconds_of(event), strict=True):
                for response_s in np.sort(seconds)[::-1].tolist():
                    left_s = event.at_s - first_s
                    periods[unit].append((left_s - response_s, left_s))
    world.results["by_clock"] = by_clock
    for place, unit in enumerate(sorted(periods)):
        world.results["since_s"][place], world.results["stale_until_s"][place] = -np.inf, 0.0
        for arrived_s, left_s in periods[unit]:
            output(world, place, arrived_s, left_s, left_s, 1.0)
    return report_of("fcfs", world, simulation.units), world.results["stale_s"].tolist()


def test_the_accumulators_of_the_simulation_agree(run: tuple[Report, Any, Any]) -> None:
    report, events, _ = run
    other_report, stale_s = simulated(events, lambda event: event.responses_s, by_clock=False)
    for live, other, query_stale_s in zip(
        report.queries, other_report.queries, stale_s, strict=True
    ):
        assert live.response_s.count == other.response_s.count > 0
        assert live.response_s.mean == pytest.approx(other.response_s.mean, rel=1e-9)
        assert live.response_s.norm == pytest.approx(other.response_s.norm, rel=1e-9)
        if live.qos == live.qos:
            assert live.qos == pytest.approx(other.qos, rel=1e-9)
        assert live.staleness * report.seconds == pytest.approx(query_stale_s, rel=1e-9)


def test_the_accumulators_of_the_simulation_agree_on_tardiness(
    run: tuple[Report, Any, Any],
) -> None:
    report, events, _ = run

    def tardiness_of(event: StepFinished) -> Sequence[Floats]:
        return event.tardiness_s or [np.zeros(0)] * len(event.call.units)

    means, (other_report, _) = report.queries[2], simulated(events, tardiness_of, by_clock=True)
    (other,) = (query for query in other_report.queries if query.response_s.count)
    assert means.tardiness_s == pytest.approx(other.tardiness_s, rel=1e-9)
    assert means.tardiness_max_s == pytest.approx(other.tardiness_max_s, rel=1e-9)
