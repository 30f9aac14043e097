"""A query is cut between its cheap conditions and what calls functions."""

import pytest

from headgate.errors import QueryRefused
from headgate.language.cut import cut
from headgate.language.parse import path_of
from headgate.model.network.network import Condition, Network, Path
from headgate.model.network.operator import Operator
from headgate.model.network.unit_table import unit_table
from headgate.model.network.units import units_of
from headgate.model.query import Query, QueryClass
from headgate.model.stream import Stream

COLUMNS = ["place", "heat"]
HOT = Condition("heat > 3", True)
SHORT = Condition("length(place) < 9", True, calls=True)
COOL = Condition("heat < 7", True)


def _path(*conditions: Condition, calls: bool = True, sheds: bool = False) -> Path:
    query = Query(name="q", sql="SELECT", query_class="H", cut=True, allows_shedding=sheds)
    outputs = ("upper(place)", "heat") if calls else ("place", "heat")
    operators = [Operator(kind="project", expressions=outputs)]
    if conditions:
        predicate = " AND ".join(condition.text for condition in conditions)
        operators.insert(0, Operator(kind="select", expressions=(predicate,)))
    return Path(
        query=query, stream="s", operators=tuple(operators), columns=("p", "heat"),
        conditions=conditions, calls=calls,
    )  # fmt: skip


def test_from_the_first_call_on_conditions_and_outputs_are_the_rest() -> None:
    queue, first, rest = cut(_path(HOT, SHORT, COOL), COLUMNS)
    assert (first.stream, first.predicate, first.into) == ("s", "heat > 3", "q__rest")
    assert (first.outputs, first.columns) == (("place", "heat"), ("place", "heat"))
    assert first.query.sql == "SELECT * FROM s WHERE heat > 3"
    assert first.conditions == (HOT,)
    assert (queue.name, rest.stream) == ("q__rest", "q__rest")
    assert rest.predicate == "length(place) < 9 AND heat < 7"
    assert rest.conditions == (SHORT, COOL)
    assert (rest.outputs, rest.columns) == (("upper(place)", "heat"), ("p", "heat"))
    assert (first.query.name, rest.query.name) == ("q__first", "q")
    assert (first.first_of, rest.first_of, rest.into) == ("q", None, None)


def test_a_condition_that_guards_another_still_does() -> None:
    digits = Condition("place RLIKE '^[0-9]+$'", True, calls=True)
    number = Condition("CAST(place AS INT) > 3", False)
    _, first, rest = cut(_path(HOT, digits, number, calls=False), COLUMNS)
    assert first.predicate == "heat > 3"
    assert rest.predicate == "place RLIKE '^[0-9]+$' AND CAST(place AS INT) > 3"


def test_where_only_outputs_call_functions_all_conditions_are_the_first() -> None:
    _, first, rest = cut(_path(HOT, COOL), COLUMNS)
    assert first.predicate == "heat > 3 AND heat < 7"
    assert (rest.predicate, rest.conditions) == (None, ())
    assert rest.outputs == ("upper(place)", "heat")


WHOLE = Path(
    query=Query(name="q", sql="SELECT", query_class="H", cut=True), stream="s",
    operators=(Operator(kind="whole", expressions=("SELECT",)),), conditions=(HOT,), calls=True,
)  # fmt: skip


@pytest.mark.parametrize(
    "path",
    [_path(), _path(HOT, calls=False), _path(SHORT), _path(SHORT, HOT),
     _path(HOT, COOL, calls=False), WHOLE],
    ids=["no condition", "no call", "call first", "call before", "no call in two", "whole"],
)  # fmt: skip
def test_where_there_is_nothing_to_cut_it_is_refused(path: Path) -> None:
    with pytest.raises(QueryRefused, match="query 'q': cut is possible only between a condition"):
        cut(path, COLUMNS)


def test_the_two_are_units_of_one_way() -> None:
    queue, *parts = cut(_path(HOT), COLUMNS)
    plain = path_of(Query(name="r", sql="SELECT heat FROM s", query_class="H"), {"s": COLUMNS})
    streams = (Stream(name="s", format="rate"), queue)
    network = Network(streams, (QueryClass(name="H", priority=1),), (*parts, plain))
    units = units_of(network)
    assert [shape.feeds for shape in units.shapes] == [(1,), (), ()]
    assert [shape.query for shape in units.shapes] == [1, 1, 2]
    assert unit_table(units)["stream"].tolist() == [0, 1, 0]
