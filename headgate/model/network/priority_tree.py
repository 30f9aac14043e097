"""The value of operators that several queries share (Sharaf §3.6)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from headgate.model.network.graph import Graph, Way

Value = Callable[[float, float, float], float]
"""The priority of a segment as a function of S, C̄ and T, for a tuple that has waited one second."""

FREE_S = 1e-200
"""What counts as the cost of boxes that are free, since a call's cost stands at its first box."""

Reader = tuple[int, int]
"""A box and the side at which it reads."""


@dataclass(frozen=True)
class PriorityTree:
    """The segments that define the priority of a shared box: their ways, C̄ and first readers."""

    ways: tuple[Way, ...]
    cost_s: float
    readers: tuple[Reader, ...]


def combined(ways: tuple[Way, ...], cost_s: float, value: Value) -> float:
    """Return the priority of segments that run together: Σ S_i w_i / C̄ (Sharaf eq 3.9).

    A priority of the thesis is S w / C̄, where w depends on T and W. So V_i C̄_i is a segment's part
    of the numerator, and the sum is divided by one cost, which counts shared boxes once. It is
    never a sum of quotients.
    """
    costs_s = [max(way.cost_s, FREE_S) for way in ways]
    parts = [
        value(way.selectivity, way_s, way.ideal_s) * way_s
        for way, way_s in zip(ways, costs_s, strict=True)
    ]
    return float(np.sum(parts)) / max(cost_s, FREE_S)


def priority_tree(
    graph: Graph, box: int, side: int, value: Value, *, by_call: bool = False
) -> PriorityTree:
    """Return the priority-defining tree of a box (Sharaf §3.6.2).

    Segments are added in descending priority while the value of all of them grows. The first one
    that does not help ends this, as in the thesis, and none is removed again. If a branch forks
    again, its own tree is added.

    Args:
        by_call: one call runs the box and the whole of every branch in the tree. So a branch that
            forks again is added as a whole, and a box with one reader has no choice.
    """

    @cache
    def tree_of(box: int, side: int) -> PriorityTree:
        readers = graph.useful_readers(box)
        cost_s, selectivity = graph.cost_s(box, side), graph.selectivity(box, side)
        ways = graph.own_ways(box, side)
        if by_call and len(readers) < 2:
            whole = graph.ways(box, side), graph.mean_cost_s(box, side)
            return PriorityTree(*whole, tuple(readers))
        branches = []
        for reader in readers:
            if by_call:
                behind, behind_s = graph.ways(*reader), graph.mean_cost_s(*reader)
            else:
                tree = tree_of(*reader)
                behind, behind_s = tree.ways, tree.cost_s
            branch = tuple(way.after(selectivity, cost_s) for way in behind)
            branch_s = selectivity * behind_s
            branches.append((combined(branch, cost_s + branch_s, value), reader, branch, branch_s))
        branches.sort(key=lambda branch: (-branch[0], branch[1]))
        chosen: list[Reader] = []
        best = combined(ways, cost_s, value) if ways else -np.inf
        for _, reader, branch, branch_s in branches:
            worth = combined(ways + branch, cost_s + branch_s, value)
            if ways and not worth > best:
                break
            chosen.append(reader)
            ways, cost_s, best = ways + branch, cost_s + branch_s, worth
        return PriorityTree(ways, cost_s, tuple(chosen))

    return tree_of(box, side)
