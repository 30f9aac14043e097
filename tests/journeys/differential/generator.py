"""Random queries of every kind, in families of similar texts."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from random import Random

from differential import collated, joined, stateless, windowed
from differential.cases import Case
from differential.draw import Draw
from differential.examples import Example
from differential.tree import sibling

KINDS: dict[Callable[[Draw], Case], int] = {
    stateless.projection: 22,
    stateless.selection: 8,
    stateless.nested: 6,
    stateless.several_rows_of_one: 5,
    stateless.with_stored_rows: 6,
    stateless.piped: 6,
    stateless.renamed: 5,
    windowed.tuples: 7,
    windowed.groups: 16,
    windowed.window_function: 6,
    windowed.sessions: 5,
    windowed.piped: 5,
    windowed.ranked: 6,
    windowed.function_over_subquery: 5,
    windowed.ordered_function: 5,
    windowed.sessions_over_subquery: 3,
    windowed.calls_in_window: 2,
    collated.windows: 4,
    collated.joins: 3,
    joined.windows: 5,
    joined.subqueries_of_windows: 8,
    joined.windows_of_three: 3,
    joined.pairs: 9,
    joined.pairs_by_number: 4,
    joined.pairs_of_subqueries: 4,
    joined.bounded: 6,
    joined.union: 5,
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
