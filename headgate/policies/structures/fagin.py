"""Fagin's algorithm for the top one: two sorted lists are read until the best is certain.

Sharaf §3.3.2.2: items have a fixed weight and an oldest head; the first list is in descending order
of weight, the second of wait; an item is worth weight × wait. Both lists are read in turn until one
item was seen in both. No item that was seen in neither can be worth more than that one.
"""

from typing import Any

import numpy as np

from headgate.compiled import borrowing
from headgate.model.arrays import Ints

NOWHERE = -1

PLACE = np.dtype(
    [
        ("heaviest", np.int64),  # the item at this place of the list of weights
        ("oldest", np.int64),  # the item at this place of the list of waits
        ("rank", np.int64),  # of the item of this number: its place in the list of weights,
        ("seat", np.int64),  # in the list of waits, −1 where it does not wait,
        ("head_s", np.float64),
        ("seen", np.int64),  # and the last look that has seen it
    ]
)


def two_lists(by_weight: Ints) -> tuple[Any, Ints]:
    """Gives the lists of items of which none waits yet, and counters: who waits, looks so far.

    Args:
        by_weight: the items in descending order of weight.
    """
    places = np.zeros(len(by_weight), dtype=PLACE)
    places["heaviest"], places["seat"] = by_weight, NOWHERE
    places["rank"][by_weight] = np.arange(len(by_weight))
    return places, np.zeros(2, dtype=np.int64)


@borrowing
def weigh(lists: Any, items: Any, item: int) -> None:
    """Moves an item whose weight has changed to its place in the list of weights."""
    places, _ = lists
    at, weight = places[item].rank, items[item].weight
    while at > 0 and items[places[at - 1].heaviest].weight < weight:
        places[at].heaviest = places[at - 1].heaviest
        places[places[at].heaviest].rank = at
        at -= 1
    while at + 1 < len(places) and items[places[at + 1].heaviest].weight > weight:
        places[at].heaviest = places[at + 1].heaviest
        places[places[at].heaviest].rank = at
        at += 1
    places[at].heaviest, places[item].rank = item, at


@borrowing
def seat(lists: Any, item: int, head_s: float) -> None:
    """Moves an item to its place in the list of waits; a head at ∞ takes it out."""
    places, counts = lists
    at = places[item].seat
    if at == NOWHERE:
        if head_s == np.inf:
            return
        at = counts[0]
        counts[0] += 1
    elif places[item].head_s == head_s:
        return
    places[item].head_s = head_s
    while at > 0 and places[places[at - 1].oldest].head_s > head_s:
        places[at].oldest = places[at - 1].oldest
        places[places[at].oldest].seat = at
        at -= 1
    while at + 1 < counts[0] and places[places[at + 1].oldest].head_s < head_s:
        places[at].oldest = places[at + 1].oldest
        places[places[at].oldest].seat = at
        at += 1
    places[at].oldest, places[item].seat = item, at
    if head_s == np.inf:
        counts[0] -= 1
        places[item].seat = NOWHERE


@borrowing
def best(lists: Any, items: Any, now_s: float) -> tuple[int, int]:
    """Gives the item of the largest weight × wait and how many were computed; −1 if none waits.

    Ties go to the item of the smaller `front`. So it reads on while an item that was not yet seen
    might be worth as much as the best.
    """
    places, counts = lists
    counts[1] += 1
    look = counts[1]
    chosen, largest, examined, place, met = NOWHERE, 0.0, 0, 0, False
    for depth in range(counts[0]):
        while places[places[place].heaviest].seat == NOWHERE:
            place += 1
        heaviest, oldest = places[place].heaviest, places[depth].oldest
        place += 1
        for item in (heaviest, oldest):
            if places[item].seen == look:  # the other list has shown it already
                met = True
                continue
            places[item].seen = look
            value = items[item].weight * (now_s - places[item].head_s)
            examined += 1
            tie = value == largest and items[item].front < items[chosen].front
            if chosen == NOWHERE or value > largest or tie:
                chosen, largest = item, value
        if met and items[heaviest].weight * (now_s - places[oldest].head_s) < largest:
            break
    return chosen, examined
