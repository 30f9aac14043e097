"""Fagin's algorithm for the best item: two sorted lists are read until it is certain.

Sharaf §3.3.2.2: items have a fixed weight and an oldest head. The first list is in descending order
of weight, the second in descending order of wait. The value of an item is weight × wait. Both lists
are read in turn until one item was seen in both. No item that was seen in neither can have a larger
value than that one.
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
        # The next fields are of the item of this number:
        ("rank", np.int64),  # its place in the list of weights
        ("seat", np.int64),  # its place in the list of waits, −1 if it does not wait
        ("head_s", np.float64),
        ("seen", np.int64),  # the last look that has seen it
    ]
)


def two_lists(by_weight: Ints) -> tuple[Any, Ints]:
    """Return the lists, with no item waiting yet, and two counters: waiting items and past looks.

    Args:
        by_weight: the items in descending order of weight.
    """
    places = np.zeros(len(by_weight), dtype=PLACE)
    places["heaviest"], places["seat"] = by_weight, NOWHERE
    places["rank"][by_weight] = np.arange(len(by_weight))
    return places, np.zeros(2, dtype=np.int64)


@borrowing
def weigh(lists: Any, items: Any, item: int) -> None:
    """Move an item whose weight has changed to its place in the list of weights."""
    places, _ = lists
    place, weight = places[item].rank, items[item].weight
    while place > 0 and items[places[place - 1].heaviest].weight < weight:
        places[place].heaviest = places[place - 1].heaviest
        places[places[place].heaviest].rank = place
        place -= 1
    while place + 1 < len(places) and items[places[place + 1].heaviest].weight > weight:
        places[place].heaviest = places[place + 1].heaviest
        places[places[place].heaviest].rank = place
        place += 1
    places[place].heaviest, places[item].rank = item, place


@borrowing
def seat(lists: Any, item: int, head_s: float) -> None:
    """Move an item to its place in the list of waits; a head at ∞ removes it."""
    places, counts = lists
    place = places[item].seat
    if place == NOWHERE:
        if head_s == np.inf:
            return
        place = counts[0]
        counts[0] += 1
    elif places[item].head_s == head_s:
        return
    places[item].head_s = head_s
    while place > 0 and places[places[place - 1].oldest].head_s > head_s:
        places[place].oldest = places[place - 1].oldest
        places[places[place].oldest].seat = place
        place -= 1
    while place + 1 < counts[0] and places[places[place + 1].oldest].head_s < head_s:
        places[place].oldest = places[place + 1].oldest
        places[places[place].oldest].seat = place
        place += 1
    places[place].oldest, places[item].seat = item, place
    if head_s == np.inf:
        counts[0] -= 1
        places[item].seat = NOWHERE


@borrowing
def best(lists: Any, items: Any, now_s: float) -> tuple[int, int]:
    """Return the item of largest weight × wait, −1 if none waits, and how many were computed.

    Ties go to the item of the smaller `front`. So the search continues while an item that was not
    seen yet might have the same value as the best.
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
            if places[item].seen == look:  # already seen in the other list
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
