"""The load shedder: whether there is overload, and where the least is lost (Aurora §2.2)."""

from typing import Any

import numpy as np
import pytest

from headgate.errors import ConfigRefused
from headgate.model.network.network import Box, Network, Path
from headgate.model.network.operator import Operator
from headgate.model.network.unit_table import unit_table
from headgate.model.network.units import units_of
from headgate.model.query import Query, QueryClass
from headgate.model.stream import Stream
from headgate.scheduler.shedder import Load, Shedder

Boxes = tuple[tuple[float, float], ...]


def query(name: str, *boxes: tuple[float, float], allows: bool = True, weight: float = 1.0) -> Path:
    """Return a query of boxes of (cost, selectivity)."""
    return Path(
        query=Query(
            name=name, sql="SELECT 1", query_class="only", allows_shedding=allows, weight=weight
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
    table, shedder = unit_table(units), Shedder(**{"headroom": 1.0, **options})
    nobody = np.zeros(len(paths), dtype=np.int64)
    waiting = nobody if pending is None else np.array(pending)
    first = shedder.rates(Load(0.0, np.array([0]), nobody, workers), units, table)
    assert first.tolist() == [0.0] * len(paths)  # nothing is known of the load yet
    load = Load(1.0, np.array([per_s]), waiting, workers)
    return shedder.rates(load, units, table).tolist()


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
        shedder = Shedder(headroom=1.0)
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
