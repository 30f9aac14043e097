"""CQC's workloads."""

from collections import Counter
from typing import Any

import pytest

from headgate.workloads.cqc import workload
from headgate.workloads.testbed import Testbed


def kinds(made: Testbed) -> Counter[tuple[str, str]]:
    found = []
    for path in made.network.paths:
        kind = "join" if path.output is not None else path.operators[-1].kind
        found.append((path.query.query_class, kind))
    return Counter(found)


@pytest.mark.parametrize("name", ["A", "B", "C"])
def test_every_workload_has_9_aggregates_6_joins_6_selections_and_27_streams(name: Any) -> None:
    made = workload(name)
    by_kind: Counter[str] = Counter()
    for (_, kind), count in kinds(made).items():
        by_kind[kind] += count
    assert by_kind == {"aggregate": 9, "join": 6, "select": 6}
    assert len(made.network.streams) == 27
    assert all(len(times_s) == 10_000 for times_s in made.arrivals.values())


@pytest.mark.parametrize(
    ("name", "counts", "priorities"),
    [("A", (7, 7, 7), (6, 3, 1)), ("B", (2, 8, 11), (3, 2, 1)), ("C", (2, 8, 11), (6, 3, 1))],
)
def test_classes_have_the_queries_and_priorities_of_table_2(
    name: Any, counts: tuple[int, ...], priorities: tuple[int, ...]
) -> None:
    made = workload(name)
    found = Counter(path.query.query_class for path in made.network.paths)
    assert tuple(found[each] for each in "HCN") == counts
    assert tuple(each.priority for each in made.network.classes) == priorities


def test_classes_of_workload_a_are_alike_and_class_h_of_b_and_c_has_joins_alone() -> None:
    alike = kinds(workload("A"))
    assert {alike[each, "aggregate"] for each in "HCN"} == {3}
    assert {alike[each, "join"] for each in "HCN"} == {2}
    for name in ("B", "C"):
        assert {kind: n for (each, kind), n in kinds(workload(name)).items() if each == "H"} == {
            "join": 2
        }


def test_workloads_b_and_c_differ_in_priorities_alone() -> None:
    b, c = workload("B"), workload("C")
    assert b.network.paths == c.network.paths
    assert b.network.boxes == c.network.boxes
    assert b.network.classes != c.network.classes


def test_class_h_alone_keeps_its_costs_and_its_streams_and_loads_less() -> None:
    everything, alone = workload("A"), workload("A", only="H")
    own = [path for path in everything.network.paths if path.query.query_class == "H"]
    assert alone.network.paths == tuple(own)
    assert set(alone.network.boxes) <= set(everything.network.boxes)
    assert len(alone.network.streams) == 3 + 2 + 2 * 2
    assert alone.utilisation is not None
    assert alone.utilisation == pytest.approx(0.95 / 3, rel=0.05)
    assert [each.name for each in alone.network.classes] == ["H"]


def test_streams_bring_1500_tuples_a_second_and_windows_hold_ten() -> None:
    made = workload("A")
    for times_s in made.arrivals.values():
        assert (len(times_s) - 1) / (times_s[-1] - times_s[0]) == pytest.approx(1500.0)
    windows_s = {box.operator.window_s for box in made.network.boxes}
    assert windows_s == {10 / 1500}


def test_selections_pass_a_quarter_or_more() -> None:
    for seed in range(5):
        for path in workload("A", seed=seed).network.paths:
            if path.operators and path.operators[0].kind == "select":
                assert 0.25 <= (path.operators[0].selectivity or 0.0) <= 1.0


def test_source_operators_stand_behind_every_stream_where_asked_for() -> None:
    made = workload("A", sources=True)
    by_name = {box.name: box for box in made.network.boxes}
    for path in made.network.paths:
        if path.output is None:
            assert path.operators[0].kind == "project"
            assert len(path.operators) == 2
        else:
            assert all(each in by_name for each in by_name[path.output].inputs)


def test_arrivals_can_be_poisson() -> None:
    made = workload("A", spacing="poisson")
    times_s = made.arrivals["s0"]
    assert times_s[-1] == pytest.approx(10_000 / 1500, rel=0.05)
    assert (times_s != workload("A").arrivals["s0"]).any()
