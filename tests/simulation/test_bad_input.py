"""What cannot be simulated is refused before the first instant, in words that say what to do."""

from typing import Any

import numpy as np
import pytest
from kit.networks import box, line, network, new_simulation, results_of, select

from headgate import simulate
from headgate.errors import ConfigRefused, HeadgateError, PlanRejected, QueryRefused, UnknownName
from headgate.model.network.operator import Operator
from headgate.model.plan import Step
from headgate.model.qos_graph import QoSGraph
from headgate.policies import Policy, State, policy_named
from headgate.scheduler.shedder import Shedder
from headgate.simulation.loop.changes import Switch

ONE = network(line("q", select(1.0)))
AT_ONCE = {"s": [0.0, 0.0]}


def refusal(kind: type[HeadgateError], **options: Any) -> str:
    """Return the message with which a run of one query is refused."""
    with pytest.raises(kind) as caught:
        simulate(ONE, {"s": np.zeros(2)}, **options)
    return str(caught.value)


def test_a_network_with_a_cycle_is_refused_with_the_cycle() -> None:
    boxes = [
        box("a", select(1.0), "s", "c"), box("b", select(1.0), "a"), box("c", select(1.0), "b"),
        box("fine", select(1.0), "s"),
    ]  # fmt: skip
    with pytest.raises(ConfigRefused, match="a -> b -> c -> a") as caught:
        network(results_of("q", "c"), boxes=boxes)
    assert "without a cycle" in str(caught.value)


def test_a_box_that_reads_itself_is_a_cycle() -> None:
    with pytest.raises(ConfigRefused, match="a -> a"):
        network(results_of("q", "a"), boxes=[box("a", select(1.0), "s", "a")])


def test_a_query_without_operators_is_refused_by_name() -> None:
    with pytest.raises(ConfigRefused, match="query 'q': operators must be at least one operator"):
        network(line("q"))


@pytest.mark.parametrize("selectivity", [-0.1, 1.5, float("nan")])
def test_a_selectivity_that_cannot_be_is_refused(selectivity: float) -> None:
    with pytest.raises(ConfigRefused, match=r"selectivity is .*, but must be between 0 and 1"):
        select(1.0, selectivity)


@pytest.mark.parametrize("cost_s", [0.0, -1.0, float("inf"), float("nan")])
def test_a_cost_that_cannot_be_is_refused(cost_s: float) -> None:
    with pytest.raises(ConfigRefused, match=r"cost_s is .*, but must be above 0 seconds"):
        select(cost_s)


def test_arrivals_out_of_order_are_refused_by_stream() -> None:
    with pytest.raises(ConfigRefused, match="stream 's': arrivals must be in ascending order"):
        new_simulation(ONE, {"s": [0.0, 2.0, 1.0]})


@pytest.mark.parametrize("instant", [-1.0, float("nan"), float("inf")])
def test_instants_that_cannot_be_are_refused(instant: float) -> None:
    with pytest.raises(ConfigRefused, match="stream 's': arrivals must be finite instants"):
        new_simulation(ONE, {"s": [instant]})


def test_arrivals_of_an_unknown_stream_are_refused_with_the_nearest() -> None:
    streams = network(line("q", select(1.0), stream="packets"), streams=["packets"])
    with pytest.raises(UnknownName, match=r"no stream 'packet'. Did you mean 'packets'"):
        new_simulation(streams, {"packet": [0.0]})


def test_a_qos_graph_that_rises_is_refused() -> None:
    with pytest.raises(ConfigRefused, match="a later result is never worth more"):
        QoSGraph(((0.0, 0.5), (1.0, 1.0)))


def test_an_unknown_policy_is_refused_with_the_nearest() -> None:
    assert "there is no policy 'fcsf'. Did you mean 'fcfs'?" in refusal(UnknownName, policy="fcsf")


def test_an_unknown_option_is_refused_with_the_nearest() -> None:
    message = refusal(UnknownName, train_tuple_count=3)
    assert "there is no option 'train_tuple_count'. Did you mean 'train_tuples'?" in message


def test_an_unknown_level_is_refused_with_those_that_the_policy_knows() -> None:
    message = refusal(ConfigRefused, level="box")
    assert "level is 'box', but must be query or operator for policy 'hr'" in message


def test_a_policy_is_refused_at_a_level_that_it_does_not_declare() -> None:
    message = refusal(ConfigRefused, policy="mss", level="operator")
    assert message == "simulation: level is 'operator', but must be query for policy 'mss'."
    assert simulate(ONE, {"s": np.zeros(2)}, policy="mss").total.response_s.count == 2


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("workers", 0, "1 or more"),
        ("workers", -3, "1 or more"),
        ("train_tuples", 0, "1 or more"),
        ("train_fraction", 0.0, "above 0 and at most 1"),
        ("train_fraction", 1.5, "above 0 and at most 1"),
        ("train_cost_s", 0.0, "above 0"),
        ("train_bytes", -1.0, "above 0"),
        ("train_spread_s", -1.0, "0 or more"),
        ("storage_s", -0.1, "0 or more"),
        ("decision_s", -0.1, "0 or more"),
        ("examine_s", -0.1, "0 or more"),
        ("smoothing", 1.1, "between 0 and 1"),
        ("window_tuples", 0, "1 or more"),
        ("interval_s", 0.0, "above 0"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_by_its_name(
    key: str, value: float, expected: str
) -> None:
    assert refusal(ConfigRefused, **{key: value}) == (
        f"simulation: {key} is {value}, but must be {expected}."
    )


def test_negative_workers_are_refused_where_calls_are_heard_too() -> None:
    message = refusal(ConfigRefused, workers=-1, listeners=[lambda event: None])
    assert message == "simulation: workers is -1, but must be 1 or more."


def test_a_negative_overhead_is_refused() -> None:
    assert "overhead_s is -1.0" in refusal(ConfigRefused, overhead_s=-1.0)


@pytest.mark.parametrize(
    ("option", "values", "names"),
    [
        ("preloaded", 3, "box with a queue"),
        ("selectivities", np.array([0.5]), "box"),
        ("tuple_costs", np.ones(2), "box or a query"),
        ("fates", [1, 1], "query"),
    ],
)
def test_a_name_in_an_option_that_nobody_has_is_refused(
    option: str, values: Any, names: str
) -> None:
    message = refusal(ConfigRefused, **{option: {"nobody": values}})
    assert message == f"simulation, {option}: name is 'nobody', but must be the name of a {names}."


def test_tuples_cannot_wait_at_a_box_inside_of_a_unit() -> None:
    two = network(line("q", select(1.0), select(1.0)))
    with pytest.raises(ConfigRefused, match=r"name is 'q.1', but must be the name of a box with a"):
        new_simulation(two, AT_ONCE, preloaded={"q.1": 1})


def test_a_negative_number_of_waiting_tuples_is_refused() -> None:
    assert "q.0 is -1, but must be 0 or more" in refusal(ConfigRefused, preloaded={"q.0": -1})


@pytest.mark.parametrize("key", ["tuple_costs", "fates"])
def test_fewer_values_than_tuples_are_refused(key: str) -> None:
    message = refusal(ConfigRefused, **{key: {"q": np.ones(1)}})
    assert "must be one for each of the 2 tuples" in message


def test_fewer_values_than_waiting_tuples_are_refused() -> None:
    message = refusal(ConfigRefused, fates={"q": [1, 1]}, preloaded={"q.0": 3})
    assert "q.0 is 3, but must be at most 2" in message


def test_a_fate_is_to_pass_or_not() -> None:
    assert "must be 1 for each tuple that passes" in refusal(ConfigRefused, fates={"q": [1, 2]})


def test_costs_of_single_tuples_are_no_less_than_nothing() -> None:
    costs_s = {"q.0": np.array([1.0, -1.0])}
    assert "must be 0 or more seconds each" in refusal(ConfigRefused, tuple_costs=costs_s)


def test_what_a_join_makes_has_no_costs_tuple_by_tuple() -> None:
    join = Operator(kind="join", cost_s=1.0, selectivity=1.0, window_s=1.0)
    boxes = [box("j", join, "s", "t"), box("c", select(1.0), "j")]
    joined = network(results_of("q", "c"), boxes=boxes, streams="st")
    with pytest.raises(ConfigRefused, match="box 'j' turns the stream's tuples into"):
        new_simulation(joined, {"s": [0.0], "t": [0.0]}, tuple_costs={"c": np.ones(9)})


@pytest.mark.parametrize("drift", [[], [0.5, -0.1], [1.5], [float("nan")]])
def test_a_drift_of_values_that_cannot_be_is_refused(drift: list[float]) -> None:
    message = refusal(ConfigRefused, selectivities={"q.0": np.array(drift)})
    assert message == "simulation, selectivities: q.0 must be one or more values from 0 to 1."


@pytest.mark.parametrize("listened", [False, True])
@pytest.mark.parametrize(
    ("operator", "missing"),
    [
        (Operator(kind="select"), "cost_s"),
        (Operator(kind="select", cost_s=1.0), "selectivity"),
        (Operator(kind="select", selectivity=0.5), "cost_s"),
    ],
)
def test_a_query_that_nobody_has_measured_is_refused_by_name(
    operator: Operator, missing: str, listened: bool
) -> None:
    unmeasured = network(line("fine", select(1.0)), line("late", select(1.0), operator))
    listeners = [lambda event: None] if listened else []
    with pytest.raises(ConfigRefused) as caught:
        simulate(unmeasured, {"s": np.zeros(2)}, listeners=listeners)
    assert str(caught.value) == (
        f"query 'late': {missing} must be known: measure the query, or give its operators cost_s"
        " and selectivity."
    )


def test_a_box_that_nobody_has_measured_is_refused_by_name() -> None:
    shared = network(results_of("q", "x"), boxes=[box("x", Operator(kind="map"), "s")])
    with pytest.raises(ConfigRefused, match="box 'x': cost_s must be known"):
        new_simulation(shared, AT_ONCE)


def test_a_box_that_nobody_reads_need_not_be_measured() -> None:
    boxes = [box("x", select(1.0), "s"), box("idle", Operator(kind="map"), "s")]
    new_simulation(network(results_of("q", "x"), boxes=boxes), AT_ONCE)


def test_a_level_that_listeners_cannot_hear_is_refused() -> None:
    message = refusal(ConfigRefused, level="operator", listeners=[lambda event: None])
    assert "level is 'operator', but must be query, and every query a line of boxes" in message


def test_options_that_listeners_cannot_hear_are_refused() -> None:
    for options in (
        {"shedder": Shedder()},
        {"switches": [Switch(1.0, "q", "go")]},
        {"learns": True},
    ):
        message = refusal(ConfigRefused, listeners=[lambda event: None], **options)
        assert "must be left out with most_fused, trigger_s, together or listeners" in message


class Planning(Policy):
    """A policy that always plans the same steps."""

    def __init__(self, *steps: Step) -> None:
        self._steps = steps

    def plan(self, state: State, now_s: float) -> list[Step]:
        return list(self._steps)


@pytest.mark.parametrize("unit", [1, 7, -1])
def test_a_plan_for_a_unit_that_cannot_run_is_refused(unit: int) -> None:
    # Unit 1 has no tuples, 7 and −1 do not exist.
    two = network(line("q", select(1.0)), line("p", select(1.0), stream="t"), streams="st")
    simulation = new_simulation(two, AT_ONCE, Planning(Step(unit)))
    with pytest.raises(PlanRejected, match=f"planned unit {unit}, which"):
        simulation.run()


def test_a_plan_that_leaves_all_waiting_is_refused() -> None:
    simulation = new_simulation(ONE, AT_ONCE, Planning())
    with pytest.raises(PlanRejected, match="waits, but nobody runs"):
        simulation.run()


def test_a_weight_or_a_deadline_that_cannot_be_is_refused_by_query() -> None:
    with pytest.raises(QueryRefused, match=r"query 'q': weight is -1.0"):
        line("q", select(1.0), weight=-1.0)
    with pytest.raises(QueryRefused, match=r"query 'q': deadline_s is 0.0"):
        line("q", select(1.0), deadline_s=0.0)


def test_nothing_to_do_is_no_error() -> None:
    for arrivals in ({}, {"s": []}):
        simulation = new_simulation(ONE, arrivals, policy_named("fcfs"))
        simulation.run()
        assert simulation.now_s == 0.0


def test_a_network_without_queries_is_no_error() -> None:
    report = simulate(network(), {"s": np.zeros(2)}, policy="fcfs")
    assert report.total.response_s.count == 0


def test_arrivals_closer_than_any_clock_tells_apart_are_no_infinite_rate() -> None:
    join = Operator(kind="join", cost_s=1.0, selectivity=0.25, window_s=0.25)
    joined = network(
        results_of("q", "j"), boxes=[box("j", join, "left", "right")], streams=("left", "right")
    )
    arrivals = {"left": np.array([0.0, 0.0]), "right": np.array([5e-324])}
    assert simulate(joined, arrivals, policy="ml").seconds == 3.0
