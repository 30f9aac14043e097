"""A query is cut between its cheap conditions and what calls functions."""

import pytest

from headgate.errors import QueryRefused
from headgate.language.cut import cut
from headgate.language.parse import path_of
from headgate.model.network import Network, Path
from headgate.model.query import Query, QueryClass
from headgate.model.stream import Stream
from headgate.model.unit_table import unit_table
from headgate.model.units import units_of

COLUMNS = ["place", "heat"]


def _path(sql: str, **options: bool) -> Path:
    query = Query(name="q", sql=sql, query_class="H", cut=True, **options)
    return path_of(query, {"s": COLUMNS})


def test_from_the_first_call_on_conditions_and_outputs_are_the_rest() -> None:
    sql = "SELECT upper(place) AS p, heat FROM s WHERE heat > 3 AND length(place) < 9 AND heat < 7"
    queue, first, rest = cut(_path(sql), COLUMNS)
    assert (first.stream, first.predicate, first.into) == ("s", "heat > 3", "q__rest")
    assert first.outputs == ("`place`", "`heat`")
    assert (queue.name, rest.stream) == ("q__rest", "q__rest")
    assert rest.predicate == "length(place) < 9 AND heat < 7"
    assert rest.outputs == ("upper(place)", "heat")
    assert (first.query.name, rest.query.name) == ("q__first", "q")
    assert (first.first_of, rest.first_of, rest.into) == ("q", None, None)
    assert first.form is not None


def test_a_condition_that_guards_another_still_does() -> None:
    sql = "SELECT heat FROM s WHERE heat > 3 AND place RLIKE '^[0-9]+$' AND CAST(place AS INT) > 3"
    _, first, rest = cut(_path(sql), COLUMNS)
    assert first.predicate == "heat > 3"
    assert rest.predicate == "place RLIKE '^[0-9]+$' AND CAST(place AS INT) > 3"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT upper(place) AS p FROM s",
        "SELECT place FROM s WHERE heat > 3",
        "SELECT upper(place) AS p FROM s WHERE length(place) > 3",
        "SELECT upper(place) AS p FROM s WHERE length(place) > 3 AND heat > 3",
        "SELECT upper(place) AS p FROM s WHERE heat > 3 OR heat < 1",
        "SELECT explode(split(place, 'a')) AS p FROM s WHERE heat > 3",
    ],
)
def test_where_there_is_nothing_to_cut_it_is_refused(sql: str) -> None:
    with pytest.raises(QueryRefused, match="query 'q': cut is possible only between a condition"):
        cut(_path(sql), COLUMNS)


def test_the_two_are_units_of_one_way() -> None:
    queue, *parts = cut(_path("SELECT upper(place) AS p FROM s WHERE heat > 3"), COLUMNS)
    plain = path_of(Query(name="r", sql="SELECT heat FROM s", query_class="H"), {"s": COLUMNS})
    streams = (Stream(name="s", format="rate"), queue)
    network = Network(streams, (QueryClass(name="H", priority=1),), (*parts, plain))
    units = units_of(network)
    assert [shape.feeds for shape in units.shapes] == [(1,), (), ()]
    assert [shape.query for shape in units.shapes] == [1, 1, 2]
    assert unit_table(units)["stream"].tolist() == [0, 1, 0]
