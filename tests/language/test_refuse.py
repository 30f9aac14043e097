"""The table of refusals."""

import pytest

from headgate.errors import QueryRefused
from headgate.language.refuse import (
    CLOCKS,
    NODES,
    STATELESS,
    SUBQUERIES,
    refuse_hidden,
    refuse_luck,
    refuse_stateful,
)
from headgate.model.query import Query


@pytest.mark.parametrize("node", sorted(NODES))
def test_every_stateful_node_is_refused_with_clause_reason_and_fix(node: str) -> None:
    with pytest.raises(QueryRefused) as refused:
        refuse_stateful("q", "SELECT 1", ["Project", node, "LogicalRDD"], [])
    error = refused.value
    assert error.clause == NODES[node].clause
    assert error.reason
    assert error.fix
    assert error.line is None


def test_no_node_is_both_stateless_and_refused() -> None:
    assert not STATELESS & set(NODES)


@pytest.mark.parametrize("expression", sorted(SUBQUERIES | CLOCKS))
def test_subqueries_and_clocks_are_refused_inside_a_stateless_plan(expression: str) -> None:
    with pytest.raises(QueryRefused, match=expression):
        refuse_stateful("q", "SELECT 1", ["Project", "LogicalRDD"], ["Alias", expression])


def test_a_plan_of_stateless_nodes_is_admitted() -> None:
    refuse_stateful("q", "SELECT 1", sorted(STATELESS), ["Alias", "Add"])


def test_a_text_that_sqlglot_cannot_read_is_refused_without_a_line() -> None:
    with pytest.raises(QueryRefused) as refused:
        refuse_stateful("q", "SELECT 'open", ["Sort"], [])
    assert (refused.value.clause, refused.value.line) == ("ORDER BY", None)


def test_luck_is_refused_with_its_name() -> None:
    with pytest.raises(QueryRefused, match="query 'q': Rand has no fixed answer"):
        refuse_luck("q", "Rand")


def test_a_column_that_would_not_come_out_is_refused() -> None:
    """Behind a window, columns that begin like ours are taken away."""
    refuse_hidden(Query(name="q", sql="SELECT '__hg_x' AS x FROM s [ROWS 5]", query_class="H"))
    hidden = Query(name="q", sql="SELECT k AS `__HG_x` FROM s [ROWS 5]", query_class="H")
    with pytest.raises(QueryRefused, match="__HG_x begins with __hg_"):
        refuse_hidden(hidden)
