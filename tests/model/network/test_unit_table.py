"""The unit table of a network: Sharaf's figures of a segment."""

import numpy as np
import pytest

from headgate.model.network.network import Network, Path
from headgate.model.network.operator import Operator
from headgate.model.network.unit_table import UnitTable, unit_table
from headgate.model.network.units import units_of
from headgate.model.query import Query, QueryClass, QueryStatistics
from headgate.model.stream import Stream


def table_with(*operators: Operator, statistics: QueryStatistics | None = None) -> UnitTable:
    query = Query(name="q", sql="SELECT 1", query_class="N", weight=2.5, deadline_s=9.0)
    network = Network(
        (Stream(name="s", format="rate"), Stream(name="t", format="rate")),
        (QueryClass(name="H", priority=6), QueryClass(name="N", priority=1)),
        (Path(query=query, stream="t", operators=operators),),
    )
    return unit_table(units_of(network), {"q": statistics} if statistics else None)


def box(cost_s: float | None, selectivity: float | None) -> Operator:
    return Operator(kind="select", cost_s=cost_s, selectivity=selectivity)


def test_a_segment_of_three_operators() -> None:
    row = table_with(box(1.0, 0.5), box(4.0, 0.2), box(10.0, 1.0))[0]
    assert row["selectivity"] == pytest.approx(0.1)  # 0.5 × 0.2 × 1
    assert row["cost_s"] == pytest.approx(4.0)  # 1 + 0.5 × 4 + 0.1 × 10
    assert row["ideal_s"] == pytest.approx(15.0)  # 1 + 4 + 10


def test_given_figures_win_over_the_operators() -> None:
    statistics = QueryStatistics(cost_s=0.002, selectivity=0.3, overhead_s=0.05)
    row = table_with(box(1.0, 0.5), statistics=statistics)[0]
    assert (row["selectivity"], row["tuple_cost_s"], row["overhead_s"]) == (0.3, 0.002, 0.05)
    assert row["ideal_s"] == pytest.approx(0.052)
    assert row["cost_s"] == pytest.approx(0.052)


def test_a_unit_without_figures_says_so() -> None:
    row = table_with(box(None, None))[0]
    assert np.isnan(row["selectivity"])
    assert np.isnan(row["tuple_cost_s"])


def test_a_unit_knows_its_stream_class_weight_and_deadline_and_has_nothing_pending() -> None:
    row = table_with(box(1.0, 0.5))[0]
    assert (row["unit"], row["query"], row["stream"], row["query_class"]) == (0, 0, 1, 1)
    assert (row["weight"], row["deadline_s"], row["pending"]) == (2.5, 9.0, 0)
    assert row["head_arrived_at_s"] == np.inf
