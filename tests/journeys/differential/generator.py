"""Random queries of every kind, in families of similar texts."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from random import Random

from differential import collation_queries, join_queries, tuple_queries, window_queries
from differential.cases import Case
from differential.draw import Draw
from differential.examples import Example
from differential.tree import sibling

KINDS: dict[Callable[[Draw], Case], int] = {
    tuple_queries.projection: 22,
    tuple_queries.selection: 8,
    tuple_queries.nested: 6,
    tuple_queries.several_rows_of_one: 5,
    tuple_queries.with_stored_rows: 6,
    tuple_queries.piped: 6,
    tuple_queries.renamed: 5,
    window_queries.tuples: 7,
    window_queries.groups: 16,
    window_queries.window_function: 6,
    window_queries.sessions: 5,
    window_queries.piped: 5,
    window_queries.ranked: 6,
    window_queries.function_over_subquery: 5,
    window_queries.ordered_function: 5,
    window_queries.sessions_over_subquery: 3,
    window_queries.calls_in_window: 2,
    collation_queries.windows: 4,
    collation_queries.joins: 3,
    join_queries.windows: 5,
    join_queries.subqueries_of_windows: 8,
    join_queries.windows_of_three: 3,
    join_queries.pairs: 9,
    join_queries.pairs_by_number: 4,
    join_queries.pairs_of_subqueries: 4,
    join_queries.bounded: 6,
    join_queries.union: 5,
}
"""Kinds of queries, each with its weight. A new kind needs a function and a line here, and a method
of the oracle if the oracle does not know its kind of time."""

SIBLINGS = 0.3
"""The share of queries that come with siblings, which differ in a detail."""


def families(seed: str, examples: Sequence[Example]) -> Iterator[list[Case]]:
    """Yield queries without end, alone or with siblings; the same seed yields the same."""
    random = Random(seed)
    draw = Draw(random, examples)
    while True:
        (kind,) = random.choices(list(KINDS), list(KINDS.values()))
        label = f"{kind.__module__.rpartition('.')[2]}.{kind.__name__}"
        case = replace(kind(draw), label=label)
        texts = {case.tree.text: case}
        if random.random() < SIBLINGS:
            for _ in range(random.randint(1, 2)):
                changed = case.with_tree(sibling(random, case.tree))
                texts.setdefault(changed.tree.text, changed)
        yield list(texts.values())
