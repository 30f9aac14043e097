"""Units at both levels, and the priority-defining tree, by hand (Sharaf §3.3, §3.6)."""

import pytest

from headgate.errors import ConfigRefused
from headgate.model.network.network import Box, Network, Path
from headgate.model.network.operator import Operator
from headgate.model.network.priority_tree import combined
from headgate.model.network.unit_table import unit_table
from headgate.model.network.units import Level, SharedPriority, Units, units_of
from headgate.model.query import Query, QueryClass
from headgate.model.stream import Stream


def select(cost_s: float, selectivity: float = 1.0) -> Operator:
    return Operator(kind="select", cost_s=cost_s, selectivity=selectivity)


def box(name: str, operator: Operator, *inputs: str) -> Box:
    return Box(name=name, operator=operator, inputs=inputs)


def query(name: str) -> Query:
    return Query(name=name, sql="SELECT 1", query_class="only")


def network(*boxes: Box, outputs: str = "", lines: tuple[Path, ...] = ()) -> Network:
    return Network(
        tuple(Stream(name=name, format="rate") for name in "lr"),
        (QueryClass(name="only", priority=1.0),),
        (*lines, *(Path(query=query(f"q_{name}"), output=name) for name in outputs)),
        boxes,
    )


def names(units: Units) -> list[str]:
    return [units.graph.nodes[shape.box].name for shape in units.shapes]


def stages(units: Units, unit: int) -> list[str]:
    return [units.graph.nodes[stage.box].name for stage in units.shapes[unit].stages]


LINE = Path(query=query("q"), stream="l", operators=(select(1.0, 0.5), select(4.0)))
JOIN = network(
    box("f", select(2.0, 0.5), "l"),
    box("j", Operator(kind="join", cost_s=1.0, selectivity=0.1, window_s=8.0), "f", "r"),
    box("c", select(5.0, 0.6), "j"),
    outputs="c",
)
FORK = network(
    box("x", select(1.0, 0.5), "l"), box("a", select(2.0, 0.8), "x"),
    box("b", select(2.0, 0.8), "x"), box("c", select(6.0, 0.5), "x"),
    box("d", select(20.0, 0.1), "x"), outputs="abcd",
)  # fmt: skip


def test_at_query_level_a_line_is_one_unit() -> None:
    units = units_of(network(lines=(LINE,)))
    assert stages(units, 0) == ["q.0", "q.1"]
    assert (units.shapes[0].streams, units.shapes[0].feeds) == ((0,), ())
    assert units.figures(0) == (0.5, 1 + 0.5 * 4)


def test_at_operator_level_every_box_is_a_unit_that_feeds_the_next() -> None:
    units = units_of(network(lines=(LINE,)), "operator")
    assert names(units) == ["q.0", "q.1"]
    first, second = units.shapes
    assert (first.streams, first.feeds, first.fed_by) == ((0,), (1,), ())
    assert (second.streams, second.feeds, second.fed_by) == ((), (), (0,))
    assert units.figures(0) == (0.5, 1.0)  # of its own box
    assert units.cost_s(0) == 3.0  # to the output


def test_at_query_level_a_join_is_one_unit_for_each_stream() -> None:
    units = units_of(JOIN)
    assert [stages(units, unit) for unit in (0, 1)] == [["f", "j", "c"], ["j", "c"]]
    assert [(shape.box, shape.side) for shape in units.shapes] == [(0, 0), (1, 1)]


def test_at_operator_level_a_join_has_a_unit_for_each_side() -> None:
    units = units_of(JOIN, "operator")
    assert [(names(units)[n], shape.side) for n, shape in enumerate(units.shapes)] == [
        ("f", 0), ("j", 0), ("j", 1), ("c", 0),
    ]  # fmt: skip
    assert [shape.feeds for shape in units.shapes] == [(1,), (3,), (3,), ()]
    assert units.shapes[3].fed_by == (1, 2)


def test_the_tree_is_built_in_descending_priority_while_the_value_grows() -> None:
    # By S/C̄: a, b 0.2 each, c 0.0625, d 0.0045. a and b: 0.8/3; with c 1.05/6 would be less.
    units = units_of(FORK, shared_priority="pdt")
    assert names(units) == ["x", "c", "d"]
    assert stages(units, 0) == ["x", "a", "b"]
    assert units.shapes[0].segments == tuple(w for w in units.graph.ways(0) if w.query in (0, 1))
    assert units.shapes[0].feeds == (1, 2)
    assert units.cost_s(0) == 1 + 0.5 * (2 + 2)
    assert combined(units.shapes[0].segments, 3.0, lambda s, c, t: s / c) == pytest.approx(0.8 / 3)


def test_the_tree_depends_on_what_the_policy_ranks_by() -> None:
    # Ranked by T alone the dearest segment comes first, and no other makes the value larger:
    # d 21, then with c (21 × 11 + 7 × 4) / 14 = 18.5.
    units = units_of(FORK, shared_priority="pdt", value=lambda s, c, t: t)
    assert stages(units, 0) == ["x", "d"]
    assert names(units) == ["x", "a", "b", "c"]


@pytest.mark.parametrize("shared_priority", ["max", "sum"])
def test_without_a_tree_a_shared_box_runs_with_all_its_readers(
    shared_priority: SharedPriority,
) -> None:
    units = units_of(FORK, shared_priority=shared_priority)
    assert [stages(units, unit) for unit in range(len(units))] == [["x", "a", "b", "c", "d"]]
    assert units.cost_s(0) == 1 + 0.5 * (2 + 2 + 6 + 20)


def test_at_operator_level_the_way_of_sharing_cuts_nothing() -> None:
    shapes = [
        units_of(FORK, "operator", shared_priority=shared_priority).shapes
        for shared_priority in ("max", "pdt")
    ]
    assert shapes[0] == shapes[1]
    assert len(shapes[0]) == 5


def test_a_call_is_counted_for_each_unit_that_a_result_passes() -> None:
    assert units_of(network(lines=(LINE,))).calls_of(0) == 1
    assert units_of(network(lines=(LINE,)), "operator").calls_of(0) == 2
    assert units_of(JOIN).calls_of(0) == 2  # one from each stream
    assert units_of(JOIN, "operator").calls_of(0) == 4  # f, both sides of j, c
    tree = units_of(FORK, shared_priority="pdt")
    assert [tree.calls_of(query) for query in range(4)] == [1, 1, 2, 2]


@pytest.mark.parametrize(
    ("level", "ideal_s", "remaining_s"),
    [("query", [1 + 4 + 1], [6.0]), ("operator", [1 + 4 + 2, 1 + 4 + 2], [7.0, 5.0])],
)
def test_the_ideal_time_holds_the_overhead_of_every_call(
    level: Level, ideal_s: list[float], remaining_s: list[float]
) -> None:
    table = unit_table(units_of(network(lines=(LINE,)), level), overhead_s=1.0)
    assert table["ideal_s"].tolist() == ideal_s
    assert table["remaining_s"].tolist() == remaining_s


def test_an_unknown_level_or_sharing_is_refused_with_those_there_are() -> None:
    with pytest.raises(ConfigRefused, match="level is 'box', but must be one of query, operator"):
        units_of(FORK, "box")  # type: ignore[arg-type]
    with pytest.raises(ConfigRefused, match="shared_priority is 'all', but must be one of"):
        units_of(FORK, shared_priority="all")  # type: ignore[arg-type]
