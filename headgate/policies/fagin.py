"""Fagin's algorithm for the top one: two sorted lists are read until the best is certain.

Sharaf §3.3.2.2: items have a fixed weight and an oldest head; the first list is in descending order
of weight, the second of wait; an item is worth weight × wait. Both lists are read in turn until one
item was seen in both. No item that was seen in neither can be worth more than that one.
"""

from typing import Any

import numpy as np

from headgate.model.events import Ints
from headgate.policies.lean import lean

NOWHERE = -1
HELD, LOOKS = 0, 1


def two_lists(by_weight: Ints) -> tuple[Any, ...]:
    """Gives the lists of items of which none waits yet.

    Args:
        by_weight: the items in descending order of weight.
    """
    count = len(by_weight)
    ranks = np.empty(count, dtype=np.int64)
    ranks[by_weight] = np.arange(count)
    return (
        by_weight.astype(np.int64),
        ranks,
        np.zeros(count, dtype=np.int64),
        np.full(count, NOWHERE, dtype=np.int64),
        np.full(count, np.inf),
        np.zeros(count, dtype=np.int64),
        np.zeros(2, dtype=np.int64),
    )


@lean
def weigh(lists: Any, items: Any, item: int) -> None:
    """Moves an item whose weight has changed to its place in the list of weights."""
    by_weight, ranks = lists[0], lists[1]
    at, weight = ranks[item], items[item].weight
    while at > 0 and items[by_weight[at - 1]].weight < weight:
        by_weight[at] = by_weight[at - 1]
        ranks[by_weight[at]] = at
        at -= 1
    while at + 1 < len(by_weight) and items[by_weight[at + 1]].weight > weight:
        by_weight[at] = by_weight[at + 1]
        ranks[by_weight[at]] = at
        at += 1
    by_weight[at], ranks[item] = item, at


@lean
def seat(lists: Any, item: int, head_s: float) -> None:
    """Moves an item to its place in the list of waits; a head at ∞ takes it out."""
    _, _, by_wait, seats, heads_s, _, counts = lists
    at = seats[item]
    if at == NOWHERE:
        if head_s == np.inf:
            return
        at = counts[HELD]
        counts[HELD] += 1
    heads_s[item] = head_s
    while at > 0 and heads_s[by_wait[at - 1]] > head_s:
        by_wait[at] = by_wait[at - 1]
        seats[by_wait[at]] = at
        at -= 1
    while at + 1 < counts[HELD] and heads_s[by_wait[at + 1]] < head_s:
        by_wait[at] = by_wait[at + 1]
        seats[by_wait[at]] = at
        at += 1
    by_wait[at], seats[item] = item, at
    if head_s == np.inf:
        counts[HELD] -= 1
        seats[item] = NOWHERE


@lean
def best(lists: Any, items: Any, now_s: float) -> tuple[int, int]:
    """Gives the item of the largest weight × wait and how many were computed; −1 if none waits.

    Ties go to the item of the smaller `front`. So it reads on while an item that was not
    yet seen might be worth as much as the best.
    """
    by_weight, _, by_wait, seats, heads_s, seen, counts = lists
    counts[LOOKS] += 1
    look = counts[LOOKS]
    chosen, largest, examined, place, met = NOWHERE, 0.0, 0, 0, False
    for depth in range(counts[HELD]):
        while seats[by_weight[place]] == NOWHERE:
            place += 1
        heaviest, oldest = by_weight[place], by_wait[depth]
        place += 1
        for item in (heaviest, oldest):
            if seen[item] == look:  # the other list has shown it already
                met = True
                continue
            seen[item] = look
            value = items[item].weight * (now_s - heads_s[item])
            examined += 1
            tie = value == largest and items[item].front < items[chosen].front
            if chosen == NOWHERE or value > largest or tie:
                chosen, largest = item, value
        if met and items[heaviest].weight * (now_s - heads_s[oldest]) < largest:
            break
    return chosen, examined
