"""Pairing heaps of units: the smallest key on top, the smaller unit number on a tie.

A heap is the number of its topmost unit, −1 where it is empty. Units are linked in place, each in
one heap or list at a time, so that any number of heaps share one array and never grow.
"""

from typing import Any

import numpy as np

from headgate.policies.lean import lean

NONE = -1

NODE = np.dtype(
    [
        ("key", np.float64),
        ("next", np.int32),  # in a list, or the next sibling in a heap
        ("prev", np.int32),  # in a list; in a heap the sibling before, or the parent of the first
        ("child", np.int32),  # the first one
        ("place", np.int32),  # what it is in, by its owner's numbers
        ("queue", np.int32),  # which of the owner's queues it is in, or was in
        ("home", np.int32),  # which it is put into
    ],
    align=True,
)
"""A unit's links: half a cache line, since memory is what queues of many units wait for."""


def nodes_of(count: int) -> Any:
    """Gives units that are in no heap.

    >>> nodes, top = nodes_of(3), NONE
    >>> nodes["key"] = [2.0, 1.0, 1.0]
    >>> for unit in range(3):
    ...     top = joined(nodes, top, unit)
    >>> top, without(nodes, top, 1)
    (1, 2)
    """
    nodes = np.zeros(count, dtype=NODE)
    nodes["next"] = nodes["prev"] = nodes["child"] = NONE
    return nodes


@lean
def comes_before(nodes: Any, unit: int, other: int) -> bool:
    """Says whether a unit has the smaller key, or the same and the smaller number."""
    key, others = nodes[unit].key, nodes[other].key
    return key < others or (key == others and unit < other)


@lean
def joined(nodes: Any, heap: int, other: int) -> int:
    """Gives the heap of all units of two."""
    if heap < 0:
        return other
    if other < 0:
        return heap
    if comes_before(nodes, other, heap):
        heap, other = other, heap
    first = nodes[heap].child
    nodes[other].next, nodes[other].prev = first, heap
    if first >= 0:
        nodes[first].prev = other
    nodes[heap].child = other
    return heap


@lean
def without(nodes: Any, heap: int, unit: int) -> int:
    """Gives the heap that is left when a unit has gone; logarithmic amortised time."""
    if unit == heap:
        return _without_top(nodes, unit)
    before, after = nodes[unit].prev, nodes[unit].next
    if nodes[before].child == unit:
        nodes[before].child = after
    else:
        nodes[before].next = after
    if after >= 0:
        nodes[after].prev = before
    return joined(nodes, heap, _without_top(nodes, unit))


@lean
def _without_top(nodes: Any, top: int) -> int:
    """Joins what was below, in pairs from the left and then all from the right."""
    unit, pairs = nodes[top].child, NONE
    nodes[top].child = NONE
    while unit >= 0:
        second = nodes[unit].next
        rest = NONE
        if second >= 0:
            rest = nodes[second].next
        pair = joined(nodes, unit, second)
        nodes[pair].next = pairs
        pairs, unit = pair, rest
    heap = NONE
    while pairs >= 0:
        rest = nodes[pairs].next
        heap = joined(nodes, heap, pairs)
        pairs = rest
    if heap >= 0:
        nodes[heap].next = nodes[heap].prev = NONE
    nodes[top].next = nodes[top].prev = NONE
    return heap
