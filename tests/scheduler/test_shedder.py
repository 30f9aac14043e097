"""The load shedder: whether there is overload, and where the least is lost (Aurora §2.2)."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.errors import ConfigRefused
from headgate.model.network.network import Box, Network, Path
from headgate.model.network.operator import Operator
from headgate.model.network.unit_table import unit_table
from headgate.model.network.units import units_of
from headgate.model.qos_graph import QoSGraph
from headgate.model.query import Query, QueryClass
from headgate.model.stream import Stream
from headgate.scheduler.shedder import Load, Shedder

Boxes = tuple[tuple[float, float], ...]


def query(
    name: str, *boxes: tuple[float, float], allows: bool = True, weight: float = 1.0,
    loss: QoSGraph | None = None,
) -> Path:  # fmt: skip
    """Return a query of boxes of (cost, selectivity)."""
    return Path(
        query=Query(
            name=name,
            sql="SELECT 1",
            query_class="only",
            allows_shedding=allows,
            weight=weight,
            loss=loss,
        ),
        stream="s",
        operators=tuple(Operator(kind="select", cost_s=c, selectivity=s) for c, s in boxes),
    )


def rates(
    *paths: Path, per_s: int = 10, pending: tuple[int, ...] | None = None, workers: int = 1,
    **options: Any,
) -> list[float]:  # fmt: skip
    """Return the share of each query that a shedder drops after a second of `per_s` arrivals."""
    network = Network(
        (Stream(name="s", format="rate"),), (QueryClass(name="only", priority=1),), paths
    )
    units = units_of(network)
    table, shedder = unit_table(units), Shedder(**{"headroom": 1.0, "stops_at": 1.0, **options})
    nobody = np.zeros(len(paths), dtype=np.int64)
    waiting = nobody if pending is None else np.array(pending)
    first = shedder.rates(Load(0.0, np.array([0]), nobody, workers), units, table)
    assert first.tolist() == [0.0] * len(paths)  # nothing is known of the load yet
    load = Load(1.0, np.array([per_s]), waiting, workers)
    return shedder.rates(load, units, table).tolist()


def run_of(*paths: Path, loads: list[tuple[int, dict[str, Any]]], **options: Any) -> list[Any]:
    """Return the rates and the reason after each second, given its arrivals and what else holds."""
    network = Network(
        (Stream(name="s", format="rate"),), (QueryClass(name="only", priority=1),), paths
    )
    units = units_of(network)
    table, shedder = unit_table(units), Shedder(**{"headroom": 1.0, **options})
    nobody, arrived, decisions = np.zeros(len(paths), dtype=np.int64), 0, []
    shedder.rates(Load(0.0, np.array([0]), nobody, 1), units, table)
    for second, (per_s, more) in enumerate(loads, start=1):
        arrived += per_s
        load = Load(float(second), np.array([arrived]), nobody, 1, **more)
        rates = shedder.rates(load, units, table)
        decisions.append(([round(rate, 6) for rate in rates.tolist()], shedder.reason))
    return decisions


# Ten tuples a second at 0.1 s each: every query asks for all of one worker's time.
RICH, POOR = query("rich", (0.1, 1.0)), query("poor", (0.1, 0.5))


def test_without_overload_nothing_is_dropped() -> None:
    assert rates(RICH) == [0.0]
    assert rates(RICH, POOR, per_s=5) == [0.0, 0.0]
    assert rates(RICH, POOR, workers=2) == [0.0, 0.0]


def test_it_drops_where_the_least_is_lost_for_each_second_saved() -> None:
    # 2 s of work a second, 1 too many. A second of `rich` gives 10 results, one of `poor` 5.
    assert rates(RICH, POOR) == [0.0, 1.0]
    assert rates(POOR, RICH) == [1.0, 0.0]


def test_it_goes_on_with_the_next_where_the_first_is_not_enough() -> None:
    # 12 tuples a second: 2.4 s of work, 1.4 too many; `poor` saves 1.2, `rich` must give 0.2.
    assert rates(RICH, POOR, per_s=12) == pytest.approx([0.2 / 1.2, 1.0])


def test_it_drops_no_more_than_is_needed() -> None:
    # 1.2 s of work a second.
    assert rates(RICH, per_s=12) == pytest.approx([0.2 / 1.2])


def test_a_weight_makes_a_loss_larger() -> None:
    # 0.5 × 4 / 0.1 = 20 against 1 / 0.1 = 10.
    assert rates(RICH, query("poor", (0.1, 0.5), weight=4.0)) == [1.0, 0.0]


def test_it_never_drops_from_a_query_that_does_not_allow_it() -> None:
    strict = query("poor", (0.1, 0.5), allows=False)
    assert rates(RICH, strict) == [1.0, 0.0]
    assert rates(RICH, strict, per_s=100) == [1.0, 0.0]
    assert rates(query("rich", (0.1, 1.0), allows=False), strict, per_s=100) == [0.0, 0.0]


def test_a_shared_box_drops_only_where_every_reader_allows_it() -> None:
    strict = Path(query=Query(name="b", sql="SELECT 1", query_class="only"), output="x")
    free = Path(
        query=Query(name="a", sql="SELECT 1", query_class="only", allows_shedding=True), output="x"
    )

    shared = Box(
        name="x", operator=Operator(kind="select", cost_s=0.1, selectivity=1.0), inputs=("s",)
    )
    for paths, expected in (((free, strict), 0.0), ((free,), 0.5)):
        network = Network(
            (Stream(name="s", format="rate"),), (QueryClass(name="only", priority=1),), paths,
            (shared,),
        )  # fmt: skip
        units = units_of(network)
        shedder = Shedder(headroom=1.0, stops_at=1.0)
        drop_rates = [
            shedder.rates(
                Load(at_s, np.array([n]), np.zeros(1, dtype=np.int64), 1), units, unit_table(units)
            )
            for at_s, n in ((0.0, 0), (1.0, 20))
        ]
        assert drop_rates[1].tolist() == [expected]


def test_headroom_is_the_part_of_the_workers_time_that_may_be_filled() -> None:
    assert rates(RICH, per_s=10, headroom=0.8) == pytest.approx([0.2])


def test_what_waits_beyond_patience_is_worked_off_as_if_it_came_now() -> None:
    # 30 tuples are 3 s of work, 2 s more than patience allows: 2 + 0.5 − 1 = 1.5 too many a second,
    # of which 5 tuples can give 0.5.
    assert rates(RICH, per_s=5, pending=(30,)) == [1.0]
    # Patience of 4 s leaves them alone.
    assert rates(RICH, per_s=5, pending=(30,), patience_s=4.0) == [0.0]
    # Patience of 2 s: (3 − 2) / 2 + 0.6 − 1 = 0.1 too many of 0.6.
    assert rates(RICH, per_s=6, pending=(30,), patience_s=2.0) == pytest.approx([0.1 / 0.6])


def test_by_value_it_first_drops_what_the_first_box_would_drop_anyway() -> None:
    # `poor` drops half of its tuples itself: that half costs 0.3 s a second and is worth nothing.
    # 6 tuples a second ask for 1.2 s, 0.2 too many: all of it comes from the worthless half.
    assert rates(RICH, POOR, per_s=6, by_value=True) == pytest.approx([0.0, 0.2 / 0.6])
    worthless = rates(
        query("rich", (0.1, 0.9)), POOR, per_s=5, workers=1, headroom=0.5, by_value=True
    )
    # 0.5 too many: 0.05 of `rich` and 0.25 of `poor` are free; 0.2 more come from where a passing
    # tuple is worth the same, 1 result for 0.1 s: the first.
    assert worthless == pytest.approx([0.1 + 0.2 / 0.5, 0.5])


def test_by_value_a_worthless_tuple_saves_only_the_first_box() -> None:
    # 0.1 s, half pass, then 0.3 s: C̄ = 0.25, 8 a second are 2 s of work. The worthless half would
    # cost 0.1 each and saves 0.4; the other 0.6 s come from tuples of 0.4 s: 1.5 of 8 a second.
    line = query("q", (0.1, 0.5), (0.3, 1.0))
    assert rates(line, per_s=8, by_value=True) == pytest.approx([0.5 + 1.5 / 8])


def test_settings_that_make_no_sense_are_refused_by_their_names() -> None:
    for key, value in (
        ("period_s", 0.0),
        ("patience_s", -1.0),
        ("headroom", 1.5),
        ("headroom", 0.0),
    ):
        with pytest.raises(ConfigRefused, match=f"shedder: {key} is {value}"):
            Shedder(**{key: value})


THREE = (
    query("dear", (0.1, 1.0), weight=1e6),
    query("middle", (0.1, 0.5), weight=1e3),
    query("cheap", (0.1, 0.1), weight=1e-2),
)
"""Worth w S / C̄: 10⁷, 5 · 10³ and 10⁻². Each asks for 0.1 s a tuple."""


@pytest.mark.parametrize(
    ("per_s", "expected"),
    [
        (3, [0.0, 0.0, 0.0]),
        (4, [0.0, 0.0, 0.2 / 0.4]),  # 1.2 s of work a second, 0.2 too many
        (5, [0.0, 0.0, 1.0]),
        (6, [0.0, 0.2 / 0.6, 1.0]),
        (10, [0.0, 1.0, 1.0]),
        (20, [0.5, 1.0, 1.0]),
    ],
)
def test_three_queries_lose_in_the_order_of_their_worth(per_s: int, expected: list[float]) -> None:
    assert rates(*THREE, per_s=per_s) == pytest.approx(expected)


def test_a_loss_graph_says_how_much_a_share_is_worth() -> None:
    # The first half of its tuples is worth a fifth of the slope, 0.2 · 10; the rest 1.8 · 10.
    tolerant = query("tolerant", (0.1, 1.0), loss=QoSGraph(((0, 1), (0.5, 0.9), (1, 0))))
    even = query("even", (0.1, 0.5))  # 5 all the way
    assert rates(even, tolerant, per_s=6) == pytest.approx([0.0, 0.2 / 0.6])
    assert rates(even, tolerant, per_s=10) == pytest.approx([0.5, 0.5])
    assert rates(even, tolerant, per_s=20) == pytest.approx([1.0, 0.5])
    assert rates(even, tolerant, per_s=40) == pytest.approx([1.0, 0.75])


def test_tuples_that_are_worth_less_by_their_values_go_first() -> None:
    # A half of `valued` has no value at all; the other half is worth twice the mean, 20.
    valued, even = query("valued", (0.1, 1.0)), query("even", (0.1, 0.5))
    losses = {1: QoSGraph(((0, 1), (0.5, 1), (1, 0)))}
    ((shed, _),) = run_of(even, valued, loads=[(10, {"losses": losses})], stops_at=1.0)
    assert shed == [0.5, 0.5]
    ((shed, _),) = run_of(even, valued, loads=[(20, {"losses": losses})], stops_at=1.0)
    assert shed == [1.0, 0.5]
    # With a loss graph too, both halves cost the same, 10 against the 5 of `even`.
    both = query("valued", (0.1, 1.0), loss=QoSGraph(((0, 1), (0.5, 0.5), (1, 0.5))))
    ((shed, _),) = run_of(even, both, loads=[(10, {"losses": losses})], stops_at=1.0)
    assert shed == [1.0, 0.0]


def test_units_that_share_code_drop_the_same_or_nothing() -> None:
    # Together 15 results for 0.2 s, which is 75 a second saved; `other` gives 100.
    pair = query("a", (0.1, 0.5)), query("b", (0.1, 1.0))
    paths = (*pair, query("other", (0.01, 1.0)))
    together = {"groups": np.array([7, 7, 3])}
    ((shed, _),) = run_of(*paths, loads=[(6, together)], stops_at=1.0)
    assert shed == [round(0.26 / 1.2, 6)] * 2 + [0.0]
    strict = query("a", (0.1, 0.5)), query("b", (0.1, 1.0), allows=False), paths[2]
    ((shed, _),) = run_of(*strict, loads=[(6, together)], stops_at=1.0)
    assert shed == [0.0, 0.0, 1.0]


def test_it_starts_and_stops_at_different_loads() -> None:
    loads = [(11, {}), (9, {}), (8, {}), (7, {}), (8, {}), (8, {}), (8, {})]
    decisions = run_of(RICH, loads=loads)
    shed = [rate for (rate,), _ in decisions]
    # A mean over the last 5 s: 11, 10, 9.33, 8.75, 8.6, 8 and 7.8 a second; it stops below 9.
    assert [rate > 0 for rate in shed] == [True, True, True, False, False, False, False]
    assert shed[0] == pytest.approx(0.2 / 1.1, abs=1e-6)
    assert [reason for _, reason in decisions][:4] == ["more arrives than can be processed"] * 3 + [
        ""
    ]


def test_poor_qos_makes_it_relieve_the_workers_step_by_step_and_back() -> None:
    poor = (5, {"poor": "class H has a mean response of 3 s", "acceptable": False})
    undecided, well = (5, {"acceptable": False}), (5, {})
    decisions = run_of(RICH, loads=[well, poor, poor, undecided, well, well, well])
    assert [rate for (rate,), _ in decisions] == pytest.approx([0, 0.2, 0.4, 0.4, 0.2, 0, 0])
    assert decisions[2][1] == decisions[3][1] == "class H has a mean response of 3 s"


def test_a_full_budget_takes_more_and_more_also_of_what_waits() -> None:
    network = Network(
        (Stream(name="s", format="rate"),), (QueryClass(name="only", priority=1),), (RICH,)
    )
    units, waits = units_of(network), np.array([5])
    table, shedder = unit_table(units), Shedder()
    shares = [
        float(shedder.rates(
            Load(float(second), np.array([0]), waits, 1, full=True, drops_queues=True), units, table
        )[0])
        for second in range(4)
    ]  # fmt: skip
    # 0.5 s of work waits. Each second a quarter of the worker's time more is to be saved.
    assert shares == pytest.approx([0.0, 0.5, 1.0, 1.0])


@given(
    loads=st.lists(st.integers(0, 40), min_size=1, max_size=12),
    allows=st.lists(st.booleans(), min_size=3, max_size=3),
    weights=st.lists(st.sampled_from([0.0, 0.5, 1.0, 9.0]), min_size=3, max_size=3),
    poor=st.booleans(),
)
def test_it_drops_shares_only_where_that_is_allowed_and_never_less_worth_later(
    loads: list[int], allows: list[bool], weights: list[float], poor: bool
) -> None:
    paths = [
        query(f"q{number}", (0.1, 1.0), allows=allows[number], weight=weights[number])
        for number in range(3)
    ]
    more = {"poor": "slow", "acceptable": False} if poor else {}
    for shed, reason in run_of(*paths, loads=[(per_s, more) for per_s in loads]):
        assert all(
            0 <= rate <= 1 and (rate == 0 or allowed)
            for rate, allowed in zip(shed, allows, strict=True)
        )
        assert reason or not any(shed)
        for rate, weight in zip(shed, weights, strict=True):
            if rate:  # whatever is worth less is dropped whole
                less = [
                    other
                    for other, w, ok in zip(shed, weights, allows, strict=True)
                    if ok and w < weight
                ]
                assert less == [1.0] * len(less)
