"""Pairing heaps of units: the smallest key on top, the smaller unit number on a tie.

A heap is the number of its top node, −1 if it is empty. The nodes of units are linked in place,
each in one heap or list at a time, so that all heaps share one array and never grow.
"""

from typing import Any

import numpy as np

from headgate.compiled import borrowing, inlined
from headgate.model.arrays import Ints

NONE = -1
CACHE_LINE_BYTES = 64

NODE = np.dtype(
    [
        ("key", np.float64),
        ("next", np.int32),  # in a list, or the next sibling in a heap
        ("prev", np.int32),  # in a list; in a heap the previous sibling, or the first one's parent
        ("child", np.int32),  # the first child
        ("unit", np.int32),
        ("place", np.int16),  # what it is in, a number that the owner defines
        ("queue", np.int16),  # the owner's queue that it is in, or was in
        ("home", np.int16),  # the owner's queue that it is put into
    ],
    align=True,
)
"""A unit's links. They take half a cache line, since queues of many units are bound by memory."""


def nodes_of(units: Ints) -> Any:
    """Return nodes for units, in no heap yet; no node crosses the boundary of a cache line.

    >>> nodes, top = nodes_of(np.arange(3)), NONE
    >>> nodes["key"] = [2.0, 1.0, 1.0]
    >>> for node in range(3):
    ...     top = joined(nodes, top, node)
    >>> top, without(nodes, top, 1)
    (1, 2)
    """
    room = np.zeros(len(units) * NODE.itemsize + CACHE_LINE_BYTES, dtype=np.uint8)
    first = -room.ctypes.data % CACHE_LINE_BYTES
    nodes = room[first : first + len(units) * NODE.itemsize].view(NODE)
    nodes["unit"] = units
    nodes["next"] = nodes["prev"] = nodes["child"] = NONE
    return nodes


@inlined
def comes_before(nodes: Any, node: int, other: int) -> bool:
    """Return True if a node has the smaller key, or the same key and the smaller unit number."""
    key, other_key = nodes[node].key, nodes[other].key
    return key < other_key or (key == other_key and nodes[node].unit < nodes[other].unit)


@inlined
def joined(nodes: Any, heap: int, other: int) -> int:
    """Join two heaps and return the heap of all their nodes."""
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


@borrowing
def without(nodes: Any, heap: int, node: int) -> int:
    """Remove a node and return the heap that is left, in logarithmic amortized time."""
    if node == heap:
        return _without_top(nodes, node)
    before, after = nodes[node].prev, nodes[node].next
    if nodes[before].child == node:
        nodes[before].child = after
    else:
        nodes[before].next = after
    if after >= 0:
        nodes[after].prev = before
    return joined(nodes, heap, _without_top(nodes, node))


@borrowing
def _without_top(nodes: Any, top: int) -> int:
    """Join the children of the top node, in pairs from the left and then all from the right."""
    node, pairs = nodes[top].child, NONE
    nodes[top].child = NONE
    while node >= 0:
        second = nodes[node].next
        rest = NONE
        if second >= 0:
            rest = nodes[second].next
        pair = joined(nodes, node, second)
        nodes[pair].next = pairs
        pairs, node = pair, rest
    heap = NONE
    while pairs >= 0:
        rest = nodes[pairs].next
        heap = joined(nodes, heap, pairs)
        pairs = rest
    if heap >= 0:
        nodes[heap].next = nodes[heap].prev = NONE
    nodes[top].next = nodes[top].prev = NONE
    return heap
