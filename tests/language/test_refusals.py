"""The table of refusals, over plans as Spark reads them."""

import pytest

from headgate.errors import QueryRefused
from headgate.language.kinds.joins import not_over_pairs, refuse_in_pairs
from headgate.language.kinds.sessions import refuse_in_sessions
from headgate.language.refusals import (
    CLOCKS,
    NODES,
    OF_FRAMES,
    RANDOM,
    STATELESS,
    WITH_TABLES,
    keeps_stored,
    refuse_sample,
    refuse_stateful,
    refuse_twin_columns,
    refuse_unfixed,
    stream_joins,
)
from headgate.model.display.plan_summary import Node, NotPossible, Reading
from headgate.model.query import Query

QUERY = Query(name="q", sql="SELECT 1", query_class="H")
S, R = frozenset({"s"}), frozenset({"r"})
NOTHING: frozenset[str] = frozenset()


def leaf(name: str, in_subquery: bool = False) -> Node:
    return Node("LogicalRDD", None, name, (), in_subquery)


def over(kind: str, *sides: frozenset[str], detail: str = "", line: int | None = 7) -> Node:
    return Node(kind, line, detail, sides or (S,), False)


def plan(*nodes: Node, expressions: dict[str, int | None] | None = None) -> Reading:
    reads = (leaf("s"),) if nodes else ()
    return Reading((*nodes, *reads), expressions or {}, None, ("s",), ("k",))


@pytest.mark.parametrize("kind", sorted(NODES))
def test_every_stateful_node_is_refused_with_clause_reason_fix_and_line(kind: str) -> None:
    with pytest.raises(QueryRefused) as refused:
        refuse_stateful(QUERY, plan(over("Project", line=1), over(kind)))
    error = refused.value
    assert error.clause == NODES[kind].clause
    assert error.reason
    assert error.fix
    assert error.line == 7


def test_no_node_is_both_stateless_and_refused() -> None:
    assert not STATELESS & set(NODES)


def test_a_plan_of_stateless_nodes_is_admitted() -> None:
    nodes = [over(kind) for kind in sorted(STATELESS - {"LogicalRDD"})]
    refuse_stateful(QUERY, plan(*nodes, expressions={"Alias": 1, "Add": 1}))


@pytest.mark.parametrize("kind", ["MapPartitionsInPandas", "ScriptTransformation", "Unheard"])
def test_what_is_not_known_is_refused_by_its_name(kind: str) -> None:
    with pytest.raises(QueryRefused, match=f"line 7: {kind} cannot run continuously") as refused:
        refuse_stateful(QUERY, plan(over(kind)))
    assert "FROM s [RANGE 60 SECONDS SLIDE 10 SECONDS]" in refused.value.fix


@pytest.mark.parametrize("kind", sorted(WITH_TABLES | OF_FRAMES))
def test_what_takes_each_tuple_by_itself_is_admitted_where_it_is_known_to(kind: str) -> None:
    refuse_stateful(QUERY, plan(over(kind)), WITH_TABLES | OF_FRAMES)
    with pytest.raises(QueryRefused):
        refuse_stateful(QUERY, plan(over(kind)))


@pytest.mark.parametrize("kind", sorted(set(NODES) - {"Sample", "GlobalLimit", "LocalLimit"}))
def test_over_stored_rows_alone_every_operator_is_admitted(kind: str) -> None:
    stored = over(kind, NOTHING)
    refuse_stateful(QUERY, plan(over("Project"), stored))


@pytest.mark.parametrize("kind", ["Sample", "GlobalLimit", "LocalLimit"])
def test_which_stored_rows_are_left_must_not_be_luck(kind: str) -> None:
    with pytest.raises(QueryRefused):
        refuse_stateful(QUERY, plan(over("Project"), over(kind, NOTHING)))


def test_a_subquery_over_a_stream_is_refused_and_one_over_tables_is_not() -> None:
    stored = Node("Aggregate", 2, "", (NOTHING,), True)
    refuse_stateful(QUERY, plan(over("Project"), stored))
    streamed = Node("Project", 2, "", (S,), True)
    with pytest.raises(
        QueryRefused, match="line 2: a subquery over a stream cannot run"
    ) as refused:
        refuse_stateful(QUERY, plan(over("Project"), streamed, leaf("s", in_subquery=True)))
    assert "the same SLIDE after every other" in refused.value.fix


@pytest.mark.parametrize("expression", sorted(CLOCKS))
def test_clocks_are_refused_with_name_and_line(expression: str) -> None:
    read = plan(over("Project"), expressions={"Alias": 1, expression: 4})
    for refuse in (refuse_stateful, refuse_unfixed):
        with pytest.raises(QueryRefused, match=f"line 4: {expression} has no fixed answer") as no:
            refuse(QUERY, read)
        assert no.value.fix == "use the tuple's own time column"


@pytest.mark.parametrize("expression", sorted(RANDOM))
def test_chance_is_refused_with_name_and_line(expression: str) -> None:
    read = plan(over("Project"), expressions={"Alias": 1, expression: 4})
    for refuse in (refuse_stateful, refuse_unfixed):
        with pytest.raises(QueryRefused, match=f"line 4: {expression} has no fixed answer") as no:
            refuse(QUERY, read)
        assert "hash(location)" in no.value.fix


def test_what_spark_calls_nondeterministic_is_refused_though_nobody_knows_it() -> None:
    read = Reading((leaf("s"),), {}, ("PythonUDF", 3), ("s",), ())
    with pytest.raises(QueryRefused, match="line 3: PythonUDF has no fixed answer"):
        refuse_unfixed(QUERY, read)


def test_a_sample_is_refused_whatever_it_is_of() -> None:
    refuse_sample(QUERY, plan(over("Aggregate")))
    for sample in (over("Sample"), over("Sample", NOTHING)):
        with pytest.raises(QueryRefused, match="line 7: TABLESAMPLE has no fixed answer"):
            refuse_sample(QUERY, plan(sample))


KINDS = ("Inner", "Cross", "LeftOuter", "RightOuter", "FullOuter", "LeftSemi", "LeftAnti")


@pytest.mark.parametrize(
    ("sides", "keeping"),
    [
        ((S, NOTHING), {"RightOuter", "FullOuter"}),
        ((NOTHING, S), {"LeftOuter", "FullOuter", "LeftSemi", "LeftAnti"}),
        ((S, R), set()),
        ((NOTHING, NOTHING), set()),
    ],
)
def test_which_joins_let_stored_rows_out_without_a_tuple(
    sides: tuple[frozenset[str], ...], keeping: set[str]
) -> None:
    joins = {kind: plan(over("Join", *sides, detail=kind)) for kind in KINDS}
    assert {kind for kind, read in joins.items() if keeps_stored(read)} == keeping
    both = [kind for kind, read in joins.items() if stream_joins(read)]
    assert both == (list(KINDS) if all(sides) else [])


@pytest.mark.parametrize(
    "kind", ["Aggregate", "Sort", "GlobalLimit", "Distinct", "Window", "Union", "Except", "Unheard"]
)
def test_over_pairs_only_what_takes_each_by_itself_is_admitted(kind: str) -> None:
    joined = over("Join", S, R, detail="Inner")
    refuse_in_pairs(QUERY, plan(over("Project"), over("Filter"), joined))
    refuse_in_pairs(QUERY, plan(over("Join", S, NOTHING, detail="LeftOuter"), joined))
    with pytest.raises(
        QueryRefused, match="over tuples that are joined as they arrive has no final"
    ):
        refuse_in_pairs(QUERY, plan(over(kind, S | R), joined))


def test_over_pairs_neither_stored_rows_alone_nor_subqueries_are_admitted() -> None:
    with pytest.raises(QueryRefused, match="keeps rows of a table that no tuple is joined with"):
        refuse_in_pairs(QUERY, plan(over("Join", S, NOTHING, detail="FullOuter")))
    inner = Node("Project", 2, "", (S,), True)
    with pytest.raises(QueryRefused, match="line 2: Project over tuples that are joined"):
        refuse_in_pairs(QUERY, plan(over("Project"), inner))


def test_a_rewrite_that_is_not_possible_names_the_clause_and_the_line() -> None:
    error = not_over_pairs(QUERY, NotPossible("Aggregate", 5))
    assert (error.clause, error.line) == ("GROUP BY or an aggregate", 5)
    assert "SLIDE" in error.fix


def test_over_sessions_tuples_are_grouped_once_and_that_is_all() -> None:
    grouped = over("Aggregate")
    refuse_in_sessions(QUERY, plan(over("Project"), over("Filter"), grouped, over("Project")))
    refuse_in_sessions(QUERY, plan(grouped, over("Sort", NOTHING)))
    inner = Node("Aggregate", 2, "", (S,), True)
    for nodes in (
        (over("Sort"), grouped),
        (over("Window"), grouped),
        (grouped, over("Join", S, NOTHING)),
        (grouped, over("Aggregate")),
        (grouped, inner),
    ):
        with pytest.raises(QueryRefused, match="cannot be used on sessions"):
            refuse_in_sessions(QUERY, plan(*nodes))


def test_a_column_comes_out_once_whatever_its_case() -> None:
    refuse_twin_columns(QUERY, ["a", "b", "a.b"])
    with pytest.raises(QueryRefused, match="column `A` comes out twice"):
        refuse_twin_columns(QUERY, ["a", "b", "A"])
