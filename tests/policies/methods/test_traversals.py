"""The traversals of a superbox: which boxes are called in which order (Aurora §4.1.2, §5.3)."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from superboxes import EXAMPLE_OF_MM, SAMPLE, Machine, forests, sample, trees

from headgate.errors import ConfigRefused
from headgate.model.network.unit_table import unit_table
from headgate.model.network.units import Units
from headgate.policies import policy_named
from headgate.policies.methods.traversal import (
    output_cost_s,
    output_selectivity,
    reduction_per_s,
    superboxes_of,
)

MC = "b4 b5 b3 b2 b6 b1"
ML = "b1 b2 b1 b6 b1 b4 b2 b1 b3 b2 b1 b5 b3 b2 b1"
MM = "b3 b6 b2 b5 b3 b2 b1 b4 b2 b1"


@pytest.mark.parametrize(("name", "calls"), [("mc", MC), ("ml", ML)])
def test_orders_of_the_sample_tree(name: str, calls: str) -> None:
    machine = Machine(policy_named(name), sample())
    machine.queue(1)
    assert machine.run() == calls


@pytest.mark.parametrize(("p", "o"), [(1.0, 0.0), (0.0001, 1.0), (3.0, 0.5)])
@pytest.mark.parametrize(
    ("name", "total", "average"),
    [("mc", (15, 6), (12.5, 6)), ("ml", (15, 15), (43 / 6, 43 / 6))],
)
def test_time_and_latency_of_the_sample_tree(
    name: str, total: Any, average: Any, p: float, o: float
) -> None:
    machine = Machine(policy_named(name), sample(cost_s=p), overhead_s=o)
    machine.queue(1)
    machine.run()
    assert machine.now_s == pytest.approx(total[0] * p + total[1] * o)
    assert np.mean(machine.latencies_s) == pytest.approx(average[0] * p + average[1] * o)
    assert round(43 / 6, 2) == 7.17  # as printed


@pytest.mark.parametrize(("p_over_o", "calls"), [(0.21, MC), (0.218, MC), (0.22, ML), (5.0, ML)])
def test_ml_is_chosen_where_a_tuple_costs_above_0_22_of_a_box_call(
    p_over_o: float, calls: str
) -> None:
    machine = Machine(policy_named("aaat", traversal="best"), sample(cost_s=p_over_o), 1.0)
    machine.queue(1)
    assert machine.run() == calls


@given(
    queues=st.lists(st.integers(0, 5), min_size=6, max_size=6).filter(any),
    p_over_o=st.floats(0.01, 10.0),
)
def test_the_cost_model_chooses_the_lower_latency_for_whatever_waits(
    queues: list[int], p_over_o: float
) -> None:
    means_s = {}
    for traversal in ("mc", "ml", "best"):
        machine = Machine(
            policy_named("aaat", traversal=traversal), sample(cost_s=p_over_o), overhead_s=1.0
        )
        machine.queues[:] = queues
        machine.run()
        means_s[traversal] = float(np.mean(machine.latencies_s))
    assert means_s["best"] == pytest.approx(min(means_s["mc"], means_s["ml"]))


def test_mm_frees_most_memory_first() -> None:
    units = sample(EXAMPLE_OF_MM)
    table = unit_table(units)
    number = {units.graph.nodes[shape.box].name: shape.number for shape in units.shapes}
    rates = [reduction_per_s(table, number[name]) for name in sorted(number)]
    assert rates == pytest.approx([0.05, 0.3, 0.5, 0.0, 0.2, 0.4])
    machine = Machine(policy_named("mm"), units)
    machine.queue(10)
    assert machine.run() == MM


@pytest.mark.parametrize(("name", "tuples"), [("mm", 36), ("ml", 40)])
def test_memory_of_the_sample_tree_averaged_over_box_calls(name: str, tuples: int) -> None:
    machine = Machine(policy_named(name), sample(EXAMPLE_OF_MM))
    machine.queue(10)
    machine.run()
    assert round(float(np.mean(machine.tuples_in_memory))) == tuples


def test_mm_weighs_tuples_by_their_size() -> None:
    table = unit_table(sample(EXAMPLE_OF_MM))
    table["bytes_in"] = 4.0
    assert reduction_per_s(table, 0) == pytest.approx(0.2)


def test_output_cost_is_the_time_until_one_output() -> None:
    units = trees({"a": ("b",), "b": ()}, {"a": (0.5, 2.0), "b": (0.4, 3.0)}, ["a"])
    (superbox,), table = superboxes_of(units), unit_table(units)
    assert output_selectivity(superbox, table, 1) == pytest.approx(0.2)
    assert output_cost_s(superbox, table, 0) == pytest.approx(2 / 0.5)
    assert output_cost_s(superbox, table, 1) == pytest.approx(2 / 0.5 + 3 / 0.2)


def test_boxes_that_turn_out_empty_are_skipped() -> None:
    figures = dict.fromkeys(SAMPLE, (1.0, 1.0)) | {"b5": (0.0, 1.0)}
    machine = Machine(policy_named("mc"), sample(figures))
    machine.queue(1, "b5 b6")
    assert machine.run() == "b5 b6 b1"


def test_queries_with_the_same_output_share_a_superbox() -> None:
    units = trees(SAMPLE, dict.fromkeys(SAMPLE, (1.0, 1.0)), ["b1", "b1"])
    assert len(superboxes_of(units)) == 1


def test_a_box_that_feeds_two_of_its_own_application_comes_before_both() -> None:
    fed_by = {"root": ("left", "right"), "left": ("fork",), "right": ("fork",), "fork": ()}
    units = trees(fed_by, dict.fromkeys(fed_by, (1.0, 1.0)), ["root"])
    (superbox,) = superboxes_of(units)
    assert superbox.units == (3, 1, 2, 0)
    assert superbox.downstream[3] == (3, 1, 2, 0)


@given(units=forests(), data=st.data())
def test_mc_calls_each_box_at_most_once_a_traversal(units: Units, data: st.DataObject) -> None:
    machine = Machine(policy_named("mc"), units)
    machine.queues[:] = data.draw(
        st.lists(st.integers(0, 3), min_size=len(units), max_size=len(units))
    )
    machine.run()
    since: list[str] = []
    for name, continued in zip(machine.calls, machine.continued, strict=True):
        since = [*since, name] if continued else [name]
        assert since.count(name) == 1


def test_a_traversal_that_nobody_knows_is_refused() -> None:
    with pytest.raises(ConfigRefused, match="traversal: one of mc, ml, mm, best"):
        policy_named("aaat", traversal="pre-order")
