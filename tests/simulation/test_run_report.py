"""The figures of a run, by hand: responses, slowdowns, staleness, delivered QoS, samples."""

from math import isnan, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.networks import (
    Watched,
    box,
    line,
    network,
    new_simulation,
    ran,
    report,
    results,
    results_of,
    select,
)

from headgate import simulate
from headgate.model.qos_graph import QoSGraph
from headgate.policies import Policy, policy_named

ONE = network(line("q", select(1.0)))


def test_response_is_departure_less_arrival_and_slowdown_its_ratio_to_the_ideal_time() -> None:
    # Done at 1, 2, 6: responses 1, 1.5, 1.
    total = report(ran(ONE, {"s": [0.0, 0.5, 5.0]})).total
    assert total.response_s.mean == pytest.approx(3.5 / 3)
    assert total.response_s.maximum == 1.5
    assert total.response_s.norm == pytest.approx(sqrt(1 + 2.25 + 1))
    two = network(line("q", select(1.5), select(0.5)))
    slow = report(ran(two, {"s": [0.0, 0.0]})).total.slowdown  # 2 / 2 and 4 / 2
    assert (slow.mean, slow.maximum, slow.norm) == (1.5, 2.0, pytest.approx(sqrt(5)))


def test_the_95th_percentile_is_right_to_one_part_in_a_hundred() -> None:
    # Ten thousand tuples wait: responses are 1, 2, ... 10 000.
    figures = report(ran(ONE, {"s": [0.0] * 10_000})).total.response_s
    assert figures.p95 == pytest.approx(9500, rel=0.01)


def test_output_rate_is_results_over_the_time_from_the_first_arrival_to_the_end() -> None:
    half = network(line("q", select(1.0, 0.0)), line("p", select(1.0)))
    figures = report(ran(half, {"s": [2.0, 3.0, 4.0]}))  # six calls: over at 8
    assert figures.seconds == 6.0
    assert figures.total.output_per_s == 3 / 6
    assert [row.output_per_s for row in figures.queries] == [0.0, 0.5]


def test_a_class_has_the_line_of_its_queries_together() -> None:
    paths = (
        line("a", select(1.0), query_class="H"), line("b", select(1.0), query_class="N"),
        line("c", select(2.0), query_class="N"),
    )  # fmt: skip
    figures = report(ran(network(*paths, classes={"H": 2.0, "N": 1.0}), {"s": [0.0]}))
    # One after the other: responses 1, 2, 4.
    high, low = figures.classes
    assert (high.response_s.mean, low.response_s.mean, low.response_s.count) == (1.0, 3.0, 2)
    assert low.response_s.norm == pytest.approx(sqrt(4 + 16))
    assert low.slowdown.mean == (2 / 1 + 4 / 2) / 2
    assert figures.total.response_s.mean == 7 / 3


def test_a_stream_is_stale_while_a_tuple_that_will_be_output_waits() -> None:
    # Out at 1, 2 and 6: stale from 0 to 2 (once, though two wait) and from 5 to 6, of 6 seconds.
    assert report(ran(ONE, {"s": [0.0, 0.5, 5.0]})).total.staleness == 3 / 6


def test_a_tuple_that_will_be_dropped_makes_nothing_stale() -> None:
    # The first tuple is dropped at 1, the second leaves at 6.
    figures = report(ran(ONE, {"s": [0.0, 5.0]}, fates={"q": [0, 1]})).total
    assert figures.staleness == 1 / 6


def test_staleness_is_a_mean_over_queries_and_weighted_by_theirs() -> None:
    # a is stale until 1, b until 4, of 4 seconds; weights 3 and 1.
    both = network(line("a", select(1.0), weight=3.0), line("b", select(3.0), weight=1.0))
    figures = report(ran(both, {"s": [0.0]}))
    assert [row.staleness for row in figures.queries] == [0.25, 1.0]
    assert figures.total.staleness == (0.25 + 1.0) / 2
    assert figures.total.weighted_staleness == (3 * 0.25 + 1 * 1.0) / 4


intervals = st.lists(st.integers(0, 60), min_size=1, max_size=15).map(sorted)


@given(instants=intervals, train=st.sampled_from([1, 4]), seed=st.integers(0, 9))
def test_staleness_is_the_union_of_the_intervals_from_arrival_to_departure(
    instants: list[int], train: int, seed: int
) -> None:
    some = network(line("q", select(1.0, 0.5)), line("p", select(2.0)))
    times_s = [instant / 4 for instant in instants]
    ended = ran(some, {"s": times_s}, train_tuples=train, seed=seed, workers=2)
    figures = report(ended)
    grid_s = np.arange(0.0, figures.seconds + times_s[0], 1 / 8) + 1 / 16
    for row in figures.queries:
        intervals_s = [(a, d) for name, a, d in results(ended) if name == row.name]
        stale = [any(a <= at_s < d for a, d in intervals_s) for at_s in grid_s]
        assert row.staleness == pytest.approx(sum(stale) / 8 / figures.seconds)


def test_delivered_qos_is_the_mean_utility_of_the_results() -> None:
    # Worth 1 up to 1 s, nothing from 3 s on; responses 1, 2, 3 and 4.
    graph = QoSGraph(((0.0, 1.0), (1.0, 1.0), (3.0, 0.0)))
    judged = network(line("q", select(1.0), qos=graph))
    assert report(ran(judged, {"s": [0.0] * 4})).total.qos == (1 + 0.5 + 0 + 0) / 4


def test_only_queries_with_a_graph_are_judged() -> None:
    graph = QoSGraph(((0.0, 1.0), (4.0, 0.0)))
    mixed = network(line("q", select(1.0), qos=graph), line("p", select(1.0)))
    figures = report(ran(mixed, {"s": [0.0]}))
    assert figures.total.qos == figures.queries[0].qos == 0.75
    assert isnan(figures.queries[1].qos)


def test_samples_over_time_hold_what_waits_and_what_left() -> None:
    # 401 arrivals, the last at 400 s: a sample a second, in which one comes and leaves.
    brief = network(line("q", select(0.5)))
    figures = report(ran(brief, {"s": np.arange(401.0).tolist()}))
    assert len(figures.over_time) == 401
    for second, (at_s, pending, size, count, response_s, slowdown, _) in enumerate(
        figures.over_time
    ):
        assert at_s == pytest.approx(second)
        assert (pending, size, count, response_s, slowdown) == (1.0, 1.0, 1, 0.5, 1.0)


def test_samples_count_every_result_once() -> None:
    graph = QoSGraph(((0.0, 1.0), (40.0, 0.0)))
    judged = network(line("q", select(1.0, 0.5), qos=graph), line("p", select(1.0)))
    figures = report(ran(judged, {"s": np.arange(200.0).tolist()}, seed=1))
    counts = np.array([row[3] for row in figures.over_time])
    assert counts.sum() == figures.total.response_s.count
    responses_s = np.nansum(counts * np.array([row[4] for row in figures.over_time]))
    assert responses_s / counts.sum() == pytest.approx(figures.total.response_s.mean)


def test_where_nobody_looked_a_sample_does_not_say_that_nothing_waits() -> None:
    # One call of 50 s over five tuples: results leave inside, but nobody looks at the queues.
    ended = ran(network(line("q", select(10.0))), {"s": [0.0] * 5 + [100.0]}, train_tuples=5)
    between = [row for row in report(ended).over_time if 5.0 < row[0] < 45.0]
    assert sum(row[3] for row in between) == 4
    assert all(isnan(row[1]) for row in between)


def test_pending_over_time_has_a_number_for_each_class() -> None:
    paths = (line("a", select(1.0), query_class="H"), line("b", select(8.0), query_class="N"))
    figures = report(ran(network(*paths, classes={"H": 2.0, "N": 1.0}), {"s": [0.0, 40.0]}))
    assert figures.pending_over_time[0] == (0.0, 1, 1)
    by_second = {round(row[0], 6): row[1:] for row in figures.pending_over_time}
    assert by_second[1.0] == (0, 1)


def test_a_lone_tuple_has_a_slowdown_of_one_whatever_a_call_costs() -> None:
    # In the compiled kernel, and in the loop that it shares with Spark.
    options = {"policy": "fcfs", "overhead_s": 0.5, "storage_s": 0.0}
    kernel = simulate(ONE, {"s": np.array([0.0])}, **options)
    options.pop("storage_s")
    loop = simulate(ONE, {"s": np.array([0.0])}, listeners=[lambda event: None], **options)
    assert kernel.total.slowdown.mean == loop.total.slowdown.mean == 1.0


def test_at_operator_level_a_lone_tuple_has_a_slowdown_of_one_too() -> None:
    boxes = [box("x", select(1.0), "s"), box("a", select(2.0), "x")]
    two = network(results_of("q", "a"), boxes=boxes)
    figures = report(ran(two, {"s": [0.0]}, level="operator", overhead_s=0.5))
    assert figures.total.response_s.mean == 4.0
    assert figures.total.slowdown.mean == 1.0


def test_what_is_measured_in_between_counts_since_the_last_time() -> None:
    """A policy that asks every 10 s hears of two results in the first span and one in the next."""
    heard = []

    class Asking(Watched):
        wake_at_s = 10.0

        def hear(self, event: object) -> None:
            if type(event).__name__ == "Measured":
                heard.append(event)
                self.wake_at_s += 10.0

    asking: Policy = Asking()
    ran(ONE, {"s": [0.0, 0.0, 12.0, 25.0]}, asking)
    assert [measured.at_s for measured in heard] == [10.0, 20.0]
    first, second = (measured.values for measured in heard)
    assert (first["mean_response_s"], first["max_response_s"]) == (1.5, 2.0)
    assert (first["output_per_s"], second["output_per_s"]) == (0.2, 0.1)
    assert first["norm_response_s"] == pytest.approx(sqrt(5))
    assert first["pending"] == pytest.approx((2 * 1 + 1 * 1) / 10)
    assert first["staleness"] == pytest.approx(0.2)
    assert (second["mean_response_s"], second["mean_slowdown"]) == (1.0, 1.0)


def test_an_alarm_behind_the_last_tuple_makes_the_run_no_longer() -> None:
    class Late(Watched):
        wake_at_s = 1000.0

    assert report(ran(ONE, {"s": [0.0]}, Late())).seconds == 1.0


def test_tuples_that_wait_at_the_start_arrived_at_instant_0() -> None:
    two = network(line("q", select(1.0), select(1.0)))
    ended = ran(two, {"s": []}, level="operator", preloaded={"q.0": 1, "q.1": 2})
    assert results(ended) == [("q", 0.0, 2.0), ("q", 0.0, 3.0), ("q", 0.0, 4.0)]
    assert report(ended).total.pending_max == 3
    assert report(ended).memory_max == 3


def test_tuples_that_arrive_later_queue_up_behind_those_that_wait_at_the_start() -> None:
    ended = ran(ONE, {"s": [0.5, 10.0]}, preloaded={"q.0": 2})
    assert results(ended) == [("q", 0.0, 1.0), ("q", 0.0, 2.0), ("q", 0.5, 3.0), ("q", 10.0, 11.0)]


@pytest.mark.parametrize("level", ["query", "operator"])
def test_a_fate_falls_at_the_last_box_so_that_dropped_tuples_cost_all_the_same(level: str) -> None:
    two = network(line("q", select(1.0, 0.1), select(1.0, 0.1)))
    ended = ran(two, {"s": [0.0, 0.0]}, level=level, fates={"q": [0, 1]})
    assert [(arrived, departed) for _, arrived, departed in results(ended)] == [(0.0, 4.0)]


def test_the_costs_of_single_tuples_are_theirs() -> None:
    costs_s = {"q.0": np.array([3.0, 1.0, 2.0])}
    ended = ran(ONE, {"s": [0.0, 0.0, 0.0]}, tuple_costs=costs_s)
    assert [departed for _, _, departed in results(ended)] == [3.0, 4.0, 6.0]


def test_in_a_fluid_run_a_tuple_becomes_lighter_instead_of_being_dropped() -> None:
    # Half of it goes on, at half the cost: 1 + 0.5 × 4, and every tuple leaves.
    two = network(line("q", select(1.0, 0.5), select(4.0, 0.5)))
    ended = ran(two, {"s": [0.0, 0.0]}, fluid=True)
    assert [departed for _, _, departed in results(ended)] == [3.0, 6.0]
    assert ended.world.results["mass"].tolist() == [0.5]


def test_run_until_stops_between_two_things_that_happen() -> None:
    simulation = new_simulation(ONE, {"s": [0.0, 0.0, 5.0]}, policy_named("fcfs"))
    simulation.run_until(1.5)
    assert report(simulation).total.response_s.count == 2  # the second is promised for 2
    assert simulation.now_s == 1.5
    simulation.run()
    assert report(simulation).seconds == 6.0
