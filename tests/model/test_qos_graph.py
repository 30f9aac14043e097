"""QoS graphs: what a result is worth by how late it is (Aurora §2, §6)."""

from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.errors import ConfigRefused
from headgate.model.qos_graph import QoSGraph

TIGHT = QoSGraph(((0, 1), (0.001, 1), (1, 0)))
LOOSE = QoSGraph(((0, 1), (4, 1), (5, 0)))


@st.composite
def falling_graphs(draw: st.DrawFn) -> QoSGraph:
    """Draw a graph of up to six points; latencies and utilities are whole, so nothing rounds."""
    count = draw(st.integers(1, 6))
    latencies = draw(st.lists(st.integers(0, 40), min_size=count, max_size=count, unique=True))
    utilities = draw(st.lists(st.integers(0, 8), min_size=count, max_size=count))
    falling = sorted(utilities, reverse=True)
    return QoSGraph(tuple(zip(sorted(latencies), [falling[0] + 1, *falling[1:]], strict=True)))


@pytest.mark.parametrize(
    ("graph", "latency_s", "utility", "gradient", "slack_s"),
    [
        (TIGHT, 0.0005, 1.0, 0.0, 0.0005),
        (TIGHT, 0.001, 1.0, 1 / 0.999, 0.999),
        (TIGHT, 0.5005, 0.5, 1 / 0.999, 0.4995),
        (TIGHT, 1.0, 0.0, 0.0, inf),
        (LOOSE, 1.0, 1.0, 0.0, 3.0),
        (LOOSE, 4.5, 0.5, 1.0, 0.5),
        (LOOSE, 7.0, 0.0, 0.0, inf),
    ],
)
def test_the_tight_and_the_loose_graph_of_aurora(
    graph: QoSGraph, latency_s: float, utility: float, gradient: float, slack_s: float
) -> None:
    assert graph.utility(latency_s) == pytest.approx(utility)
    assert graph.gradient(latency_s) == pytest.approx(gradient)
    assert graph.slack_s(latency_s) == pytest.approx(slack_s)


def test_critical_points_are_where_the_slope_changes() -> None:
    assert list(TIGHT.critical_s) == [0.001, 1.0]
    assert list(QoSGraph(((0, 1), (2, 0.5), (4, 0))).critical_s) == [0.0, 4.0]
    assert list(QoSGraph(((0, 1), (9, 1))).critical_s) == []


def test_a_graph_may_have_any_number_of_critical_points() -> None:
    stairs = QoSGraph(((0, 8), (1, 8), (2, 6), (3, 6), (4, 1), (5, 1), (6, 0)))
    assert list(stairs.critical_s) == [1, 2, 3, 4, 5, 6]
    assert [stairs.gradient(latency_s) for latency_s in (1.5, 3.5, 5.5)] == [0.25, 0.625, 0.125]


def test_utilities_are_divided_by_the_largest_so_that_graphs_compare() -> None:
    assert QoSGraph(((0, 40), (4, 40), (5, 0))) == LOOSE


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        ((), "at least one point"),
        (((0, nan),), "finite"),
        (((0, 1), (inf, 0)), "finite"),
        (((-1, 1), (1, 0)), "from 0 seconds on"),
        (((0, 1), (2, 0.5), (1, 0)), "ascending latency"),
        (((0, 1), (1, 0.5), (1, 0)), "ascending latency"),
        (((0, 0.5), (1, 1)), "never worth more"),
        (((0, 1), (1, 0.2), (2, 0.3)), "never worth more"),
        (((0, 0), (1, 0)), "above 0"),
        (((0, 1), (1, -0.5)), "down to 0"),
    ],
)
def test_a_graph_that_rises_or_makes_no_sense_is_refused(
    points: tuple[tuple[float, float], ...], expected: str
) -> None:
    with pytest.raises(ConfigRefused, match=expected):
        QoSGraph(points)


@given(graph=falling_graphs(), latency_s=st.integers(-1, 50))
def test_the_gradient_is_what_the_utility_loses_until_the_next_second(
    graph: QoSGraph, latency_s: int
) -> None:
    lost = graph.utility(latency_s) - graph.utility(latency_s + 1)
    assert graph.gradient(latency_s) == pytest.approx(lost, abs=1e-12)


@given(graph=falling_graphs(), latency_s=st.floats(0, 50))
def test_the_gradient_stays_until_the_slack_has_ended(graph: QoSGraph, latency_s: float) -> None:
    ends_s = min(latency_s + graph.slack_s(latency_s), 60.0)
    middle_s = latency_s + (ends_s - latency_s) / 2
    assert graph.gradient(middle_s) == pytest.approx(graph.gradient(latency_s))
    assert graph.slack_s(latency_s) > 0
