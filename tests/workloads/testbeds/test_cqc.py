"""CQC's workloads."""

from collections import Counter
from math import isnan
from typing import Any

import pytest

from headgate import simulate
from headgate.workloads.testbeds.cqc import workload
from headgate.workloads.testbeds.testbed import Testbed


def kinds(testbed: Testbed) -> Counter[tuple[str, str]]:
    pairs = []
    for path in testbed.network.paths:
        kind = "join" if path.output is not None else path.operators[-1].kind
        pairs.append((path.query.query_class, kind))
    return Counter(pairs)


@pytest.mark.parametrize("name", ["A", "B", "C"])
def test_every_workload_has_9_aggregates_6_joins_6_selections_and_27_streams(name: Any) -> None:
    testbed = workload(name)
    by_kind: Counter[str] = Counter()
    for (_, kind), count in kinds(testbed).items():
        by_kind[kind] += count
    assert by_kind == {"aggregate": 9, "join": 6, "select": 6}
    assert len(testbed.network.streams) == 27
    assert all(len(times_s) == 10_000 for times_s in testbed.arrivals.values())


@pytest.mark.parametrize(
    ("name", "counts", "priorities"),
    [("A", (7, 7, 7), (6, 3, 1)), ("B", (2, 8, 11), (3, 2, 1)), ("C", (2, 8, 11), (6, 3, 1))],
)
def test_classes_have_the_queries_and_priorities_of_table_2(
    name: Any, counts: tuple[int, ...], priorities: tuple[int, ...]
) -> None:
    testbed = workload(name)
    queries_by_class = Counter(path.query.query_class for path in testbed.network.paths)
    assert tuple(queries_by_class[query_class] for query_class in "HCN") == counts
    assert tuple(query_class.priority for query_class in testbed.network.classes) == priorities


def test_classes_of_workload_a_are_alike_and_class_h_of_b_and_c_has_joins_alone() -> None:
    alike = kinds(workload("A"))
    assert {alike[query_class, "aggregate"] for query_class in "HCN"} == {3}
    assert {alike[query_class, "join"] for query_class in "HCN"} == {2}
    for name in ("B", "C"):
        assert {
            kind: n
            for (query_class, kind), n in kinds(workload(name)).items()
            if query_class == "H"
        } == {"join": 2}


def test_workloads_b_and_c_differ_in_priorities_alone() -> None:
    b, c = workload("B"), workload("C")
    assert b.network.paths == c.network.paths
    assert b.network.boxes == c.network.boxes
    assert b.network.classes != c.network.classes


def test_class_h_alone_keeps_its_costs_and_its_streams_and_loads_less() -> None:
    everything, alone = workload("A"), workload("A", only="H")
    paths_of_h = [path for path in everything.network.paths if path.query.query_class == "H"]
    assert alone.network.paths == tuple(paths_of_h)
    assert set(alone.network.boxes) <= set(everything.network.boxes)
    assert len(alone.network.streams) == 3 + 2 + 2 * 2
    assert alone.utilisation is not None
    assert alone.utilisation == pytest.approx(0.95 / 3, rel=0.05)
    assert [query_class.name for query_class in alone.network.classes] == ["H"]


def test_streams_bring_1500_tuples_a_second_and_windows_hold_ten() -> None:
    testbed = workload("A")
    for times_s in testbed.arrivals.values():
        assert (len(times_s) - 1) / (times_s[-1] - times_s[0]) == pytest.approx(1500.0)
    windows_s = {box.operator.window_s for box in testbed.network.boxes}
    assert windows_s == {10 / 1500}


def test_selections_pass_a_quarter_or_more() -> None:
    for seed in range(5):
        for path in workload("A", seed=seed).network.paths:
            if path.operators and path.operators[0].kind == "select":
                assert 0.25 <= (path.operators[0].selectivity or 0.0) <= 1.0


def test_source_operators_stand_behind_every_stream_where_asked_for() -> None:
    testbed = workload("A", sources=True)
    by_name = {box.name: box for box in testbed.network.boxes}
    for path in testbed.network.paths:
        if path.output is None:
            assert path.operators[0].kind == "project"
            assert len(path.operators) == 2
        else:
            assert all(input_name in by_name for input_name in by_name[path.output].inputs)


def test_arrivals_can_be_poisson() -> None:
    testbed = workload("A", spacing="poisson")
    times_s = testbed.arrivals["s0"]
    assert times_s[-1] == pytest.approx(10_000 / 1500, rel=0.05)
    assert (times_s != workload("A").arrivals["s0"]).any()


def test_every_query_has_results_also_the_nine_aggregates() -> None:
    testbed = workload("B", tuples=300)
    report = simulate(testbed.network, testbed.arrivals, policy="cqc", level="operator")
    assert len(report.queries) == 21
    assert all(line.response_s.count > 0 for line in report.queries)
    windows = [line for line in report.queries if "aggregate" in line.name]
    assert len(windows) == 9
    assert all(line.tardiness_s >= 0 for line in windows)
    others = [line for line in report.queries if line not in windows]
    assert all(isnan(line.tardiness_s) for line in others)
