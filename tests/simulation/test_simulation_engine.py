"""Virtual time: what a call costs, when results leave, which events are heard and when."""

from typing import Any

import numpy as np
import pytest
from kit.networks import lines_of

from headgate import simulate
from headgate.errors import ConfigRefused, HeadgateError
from headgate.model.events import Event, StepFinished, StepStarted
from headgate.model.network.network import Network, Path
from headgate.model.network.operator import Operator
from headgate.model.query import Query, QueryStatistics


def queries(*boxes: tuple[float, float], streams: int = 1) -> Network:
    """Return one query for each (cost in seconds, selectivity), reading the streams in turn."""
    return lines_of([[box] for box in boxes], streams=streams)


class Trace:
    """A record of the events of a run."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def events_of(self, kind: type) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    def responses_s(self, unit: int) -> list[float]:
        return [
            response_s
            for event in self.events_of(StepFinished)
            for member, responses_s in zip(event.call.units, event.responses_s, strict=True)
            if member == unit
            for response_s in responses_s.tolist()
        ]


def traced(network: Network, arrivals: dict[str, list[float]], **options: Any) -> Trace:
    trace = Trace()
    times_s = {name: np.array(instants, dtype=float) for name, instants in arrivals.items()}
    simulate(network, times_s, listeners=[trace.events.append], **options)
    return trace


def test_tuples_of_one_query_queue_up_behind_each_other() -> None:
    trace = traced(queries((2.0, 1.0)), {"s0": [0.0, 1.0, 10.0]})
    assert trace.responses_s(0) == pytest.approx([2.0, 3.0, 2.0])


def test_overhead_is_paid_once_a_call_however_many_tuples_it_takes() -> None:
    statistics = {"q0": QueryStatistics(cost_s=1.0, selectivity=1.0, overhead_s=10.0)}
    for train_tuples, responses_s in [(3, [11.0, 12.0, 13.0]), (1, [11.0, 22.0, 33.0])]:
        trace = traced(
            queries((1.0, 1.0)),
            {"s0": [0, 0, 0]},
            statistics=statistics,
            train_tuples=train_tuples,
        )
        assert trace.responses_s(0) == pytest.approx(responses_s)


def test_given_figures_win_over_the_operators_in_what_a_call_costs() -> None:
    statistics = {"q0": QueryStatistics(cost_s=3.0, selectivity=1.0)}
    trace = traced(queries((1.0, 0.0)), {"s0": [0.0]}, statistics=statistics)
    assert trace.responses_s(0) == pytest.approx([3.0])


def test_a_source_that_is_asked_every_5_s_hides_its_tuples_till_then() -> None:
    trace = traced(queries((1.0, 1.0)), {"s0": [0.0, 4.0, 5.0, 6.0]}, trigger_s={"s0": 5.0})
    # Seen at 0, 5, 5 and 10; responses count from the arrival.
    assert trace.responses_s(0) == pytest.approx([1.0, 2.0, 2.0, 5.0])


def test_results_leave_one_by_one_or_together_at_the_end_of_the_call() -> None:
    options: dict[str, Any] = {"train_tuples": 3}
    network, arrivals = queries((2.0, 1.0)), {"s0": [0.0, 0.0, 0.0]}
    assert traced(network, arrivals, **options).responses_s(0) == pytest.approx([2, 4, 6])
    together = traced(network, arrivals, together=True, **options)
    assert together.responses_s(0) == pytest.approx([6, 6, 6])


def test_members_of_a_fused_call_run_one_after_the_other_and_pay_overhead_once() -> None:
    statistics = {
        "q0": QueryStatistics(cost_s=1.0, selectivity=1.0, overhead_s=10.0),
        "q1": QueryStatistics(cost_s=2.0, selectivity=1.0, overhead_s=10.0),
    }
    options: dict[str, Any] = {"statistics": statistics, "most_fused": 2, "policy": "rr"}
    trace = traced(queries((1.0, 1.0), (2.0, 1.0)), {"s0": [0.0]}, **options)
    finished = trace.events_of(StepFinished)
    assert [event.call.units for event in finished] == [(0, 1)]
    assert finished[0].seconds == pytest.approx(13)
    assert (trace.responses_s(0), trace.responses_s(1)) == (
        pytest.approx([11]),
        pytest.approx([13]),
    )
    together = traced(queries((1.0, 1.0), (2.0, 1.0)), {"s0": [0.0]}, together=True, **options)
    assert (together.responses_s(0), together.responses_s(1)) == (
        pytest.approx([13]),
        pytest.approx([13]),
    )


def test_two_workers_run_two_queries_at_once() -> None:
    network, arrivals = queries((1.0, 1.0), (1.0, 1.0)), {"s0": [0.0, 0.0]}
    one = traced(network, arrivals, workers=1, policy="rr")
    two = traced(network, arrivals, workers=2, policy="rr")
    assert sorted(one.responses_s(0) + one.responses_s(1)) == pytest.approx([1, 2, 3, 4])
    assert sorted(two.responses_s(0) + two.responses_s(1)) == pytest.approx([1, 1, 2, 2])


def test_workers_do_not_split_one_query() -> None:
    trace = traced(queries((1.0, 1.0)), {"s0": [0.0, 0.0, 0.0]}, workers=4)
    assert trace.responses_s(0) == pytest.approx([1, 2, 3])


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_never_more_calls_under_way_than_workers_and_no_query_twice(workers: int) -> None:
    boxes = [(0.3, 1.0), (0.5, 0.5), (0.7, 0.2), (0.2, 1.0)]
    trace = traced(
        queries(*boxes), {"s0": [number * 0.4 for number in range(60)]}, workers=workers,
        train_tuples=3,
    )  # fmt: skip
    under_way: list[int] = []
    most = 0
    for event in trace.events:
        if isinstance(event, StepStarted):
            assert not set(under_way) & set(event.call.units)
            under_way += event.call.units
            most = max(most, len(under_way))
        elif isinstance(event, StepFinished):
            for unit in event.call.units:
                under_way.remove(unit)
    assert most == workers
    assert under_way == []


@pytest.mark.parametrize("workers", [1, 2])
def test_time_never_runs_backwards(workers: int) -> None:
    trace = traced(
        queries((0.3, 1.0), (0.5, 0.5), streams=2),
        {"s0": [0.0, 0.1, 5.0], "s1": [0.05, 0.2, 0.3, 4.0]},
        workers=workers,
    )
    instants_s = [event.at_s for event in trace.events]
    assert instants_s == sorted(instants_s)


def test_a_path_of_operators_charges_a_tuple_for_each_that_it_reaches() -> None:
    operators = tuple(
        Operator(kind="select", cost_s=cost_s, selectivity=0.5) for cost_s in (1.0, 4.0)
    )
    query = Query(name="q0", sql="SELECT 1", query_class="only")
    path = Path(query=query, stream="s0", operators=operators)
    network = Network(queries().streams, queries().classes, (path,))
    trace = traced(network, {"s0": np.zeros(4000).tolist()}, train_tuples=4000, seed=3)
    finished = trace.events_of(StepFinished)[0]
    reached = (finished.seconds - 4000 * 1.0) / 4.0
    assert reached == pytest.approx(2000, abs=4 * np.sqrt(4000 * 0.25))
    assert finished.tuples_out[0] == pytest.approx(1000, abs=4 * np.sqrt(4000 * 0.25 * 0.75))


def test_tuples_of_two_streams_that_arrive_at_the_same_instant_are_all_known_to_the_decision() -> (
    None
):
    # q1 has the higher rate; both tuples are there at time 0, so it must go first.
    trace = traced(
        queries((5.0, 1.0), (1.0, 1.0), streams=2), {"s0": [0.0], "s1": [0.0]}, policy="hr"
    )
    assert trace.responses_s(1) == pytest.approx([1.0])
    assert trace.responses_s(0) == pytest.approx([6.0])


def test_a_tuple_that_arrives_as_a_call_ends_is_known_to_the_next_decision() -> None:
    trace = traced(
        queries((5.0, 1.0), (1.0, 1.0), streams=2), {"s0": [0.0, 0.0], "s1": [5.0]}, policy="hr"
    )
    assert trace.responses_s(1) == pytest.approx([1.0])


def test_pending_tuples_over_time_obey_littles_law() -> None:
    # Every tuple is output and waits alone, so the sum of responses is the area under the queue.
    arrivals_s = np.array([0.0, 1.0, 2.0, 3.0, 20.0])
    report = simulate(queries((4.0, 1.0)), {"s0": arrivals_s})
    area = report.total.pending_mean * report.seconds
    assert area == pytest.approx(report.total.response_s.mean * report.total.response_s.count)


def test_an_empty_stream_is_a_run_of_no_calls() -> None:
    report = simulate(queries((1.0, 1.0)), {})
    assert (report.calls, report.total.response_s.count) == (0, 0)


def test_arrivals_out_of_order_are_refused_with_the_streams_name() -> None:
    with pytest.raises(ConfigRefused, match=r"stream 's0': arrivals must be in ascending order"):
        simulate(queries((1.0, 1.0)), {"s0": np.array([1.0, 0.5])})


def test_fates_for_fewer_tuples_than_arrive_are_refused() -> None:
    with pytest.raises(HeadgateError, match="q0"):
        simulate(queries((1.0, 1.0)), {"s0": np.zeros(3)}, fates={"q0": (1, 1)})


def test_arrivals_of_a_stream_that_does_not_exist_are_refused() -> None:
    with pytest.raises(HeadgateError, match="sensor"):
        simulate(queries((1.0, 1.0)), {"sensor": np.zeros(3)})
