"""A calendar queue: entries wait for an instant, and all that are due are taken at once (Aurora §6.2).

Days of equal length hang on the wall in a ring; an entry is in the list of its day, whatever the
year. Looking for what is due walks the days since the last look. Insertion, deletion and taking are
constant amortised time, since the ring has as many days as entries (within a factor of 4) and a day
is about as long as the time between two entries that fall due, or between two looks if that is
longer: then a look walks a day or so, and a day has an entry or so.

A queue is a tuple of arrays, so that compiled policies can keep it in their memory.
"""

from typing import Any

import numpy as np

from headgate.model.events import Ints
from headgate.policies.borrowing import borrowing

ENTRY = np.dtype(
    [("at_s", np.float64), ("before", np.int32), ("after", np.int32), ("slot", np.int32)],
    align=True,
)
"""An entry, in the list of its slot of the ring; −1 where there is none. One cache line or two."""

FEWEST_DAYS = 16
LONGEST_DAY = 4e18
NOWHERE = -1

# Of the figures: length of a day, the earliest instant left in today's list, when counting began,
# the last look.
DAY_S, EARLIEST_S, SINCE_S, LOOKED_S = 0, 1, 2, 3
# Of the counts: days of the ring, entries, today's number; looks, entries taken and list entries and
# days that were looked at since counting began.
DAYS, HELD, TODAY, LOOKS, TAKEN, WORK = 0, 1, 2, 3, 4, 5


def calendar_queue(capacity: int) -> tuple[Any, ...]:
    """Gives an empty queue for entries 0, ..., capacity − 1, each of which is in it once or not.

    >>> queue, due = calendar_queue(3), np.empty(3, dtype=np.int64)
    >>> for entry, at_s in enumerate((2.0, 1.0, 3.0)):
    ...     insert(queue, entry, at_s)
    >>> delete(queue, 0)
    >>> due[: take_due(queue, 2.5, due)]
    array([1])
    """
    most_days = FEWEST_DAYS
    while most_days < capacity:
        most_days *= 2
    entries = np.zeros(capacity, dtype=ENTRY)
    entries["slot"] = NOWHERE
    heads = np.full(most_days, NOWHERE, dtype=np.int32)
    counts = np.zeros(6, dtype=np.int64)
    counts[DAYS] = FEWEST_DAYS
    return entries, heads, np.array([1.0, np.inf, 0.0, 0.0]), counts


@borrowing
def holds(queue: Any, entry: int) -> bool:
    """Says whether an entry waits."""
    return bool(queue[0][entry].slot >= 0)


@borrowing
def instant(queue: Any, entry: int) -> float:
    """Gives the instant that an entry waits for; ∞ where it does not wait."""
    found = queue[0][entry]
    return found.at_s if found.slot >= 0 else np.inf


@borrowing
def insert(queue: Any, entry: int, at_s: float) -> None:
    """Lets an entry that is not in the queue wait for an instant; a past one is due at once."""
    entries, heads, figures, counts = queue
    if counts[HELD] >= 2 * counts[DAYS] and counts[DAYS] < len(heads):
        _rebuild(queue, 2 * counts[DAYS], figures[DAY_S])
    _link(entries, heads, figures, counts, entry, at_s)
    counts[HELD] += 1


@borrowing
def delete(queue: Any, entry: int) -> None:
    """Takes an entry out, if it is in."""
    entries, heads, figures, counts = queue
    if entries[entry].slot < 0:
        return
    _unlink(entries, heads, entry)
    counts[HELD] -= 1
    if 4 * counts[HELD] < counts[DAYS] and counts[DAYS] > FEWEST_DAYS:
        _rebuild(queue, counts[DAYS] // 2, figures[DAY_S])


@borrowing
def take_due(queue: Any, now_s: float, due: Ints) -> int:
    """Takes out all entries whose instant has come, in no certain order, and gives their number.

    Args:
        now_s: never before that of an earlier call.
        due: is filled with the entries; has room for all.
    """
    entries, heads, figures, counts = queue
    counts[LOOKS] += 1
    figures[LOOKED_S] = now_s
    today, days = counts[TODAY], counts[DAYS]
    day = max(_day(now_s, figures[DAY_S]), today)
    if day == today and now_s < figures[EARLIEST_S]:
        return 0
    taken, seen, earliest_s = 0, 0, np.inf
    first = max(today, day - days + 1)
    for each in range(first, day + 1):
        entry, earliest_s = heads[each & (days - 1)], np.inf
        while entry >= 0:
            seen += 1
            after = entries[entry].after
            if entries[entry].at_s <= now_s:
                _unlink(entries, heads, entry)
                due[taken] = entry
                taken += 1
            else:
                # Entries of later years count too: their day begins before their instant.
                earliest_s = min(earliest_s, entries[entry].at_s)
            entry = after
    figures[EARLIEST_S], counts[TODAY] = earliest_s, day
    counts[HELD] -= taken
    counts[TAKEN] += taken
    counts[WORK] += seen + day + 1 - first
    _adapt(queue, now_s)
    return taken


@borrowing
def _adapt(queue: Any, now_s: float) -> None:
    """Sets the length of a day anew when enough was counted, or when looks cost too much.

    A day as long as the time between two looks is safe, however instants cluster: a look then sees
    one list, and all lists together are seen once in as many looks as there are days. Longer days
    are cheaper where few entries fall due. So where work has grown out of proportion, the safe
    length is taken. A rebuilding costs as much as was done since the last one.
    """
    _, _, figures, counts = queue
    looks, taken, days = counts[LOOKS], counts[TAKEN], counts[DAYS]
    too_much = counts[WORK] > 8 * (looks + taken) + 2 * days
    few = 4 * counts[HELD] < days and days > FEWEST_DAYS
    if not (too_much or few or looks > 4 * days):
        return
    passed_s, day_s = now_s - figures[SINCE_S], figures[DAY_S]
    if passed_s > 0.0:
        day_s = passed_s / (looks if too_much else max(1, min(looks, taken)))
    figures[SINCE_S] = now_s
    counts[LOOKS] = counts[TAKEN] = counts[WORK] = 0
    while few and 2 * counts[HELD] < days and days > FEWEST_DAYS:
        days //= 2
    if few or not 0.25 < day_s / figures[DAY_S] < 4.0:
        # Days are counted from time 0, so that their number must fit into an integer.
        _rebuild(queue, days, max(day_s, 1e-12 * (1.0 + abs(now_s))))


@borrowing
def _rebuild(queue: Any, days: int, day_s: float) -> None:
    """Hangs all entries into a ring of so many days of that length."""
    entries, heads, figures, counts = queue
    chain = NOWHERE
    for slot in range(counts[DAYS]):
        entry = heads[slot]
        while entry >= 0:
            after = entries[entry].after
            entries[entry].after = chain
            chain, entry = entry, after
        heads[slot] = NOWHERE
    counts[DAYS], counts[TODAY] = days, _day(figures[LOOKED_S], day_s)
    figures[DAY_S], figures[EARLIEST_S] = day_s, np.inf
    while chain >= 0:
        after = entries[chain].after
        _link(entries, heads, figures, counts, chain, entries[chain].at_s)
        chain = after


@borrowing
def _link(entries: Any, heads: Any, figures: Any, counts: Any, entry: int, at_s: float) -> None:
    day = max(_day(at_s, figures[DAY_S]), counts[TODAY])
    slot = day & (counts[DAYS] - 1)
    head = heads[slot]
    entries[entry].at_s, entries[entry].slot = at_s, slot
    entries[entry].before, entries[entry].after = NOWHERE, head
    if head >= 0:
        entries[head].before = entry
    heads[slot] = entry
    if day == counts[TODAY]:
        figures[EARLIEST_S] = min(figures[EARLIEST_S], at_s)


@borrowing
def _unlink(entries: Any, heads: Any, entry: int) -> None:
    before, after = entries[entry].before, entries[entry].after
    if before >= 0:
        entries[before].after = after
    else:
        heads[entries[entry].slot] = after
    if after >= 0:
        entries[after].before = before
    entries[entry].slot = NOWHERE


@borrowing
def _day(at_s: float, day_s: float) -> int:
    """Gives the number of the day of an instant; never a smaller one for a later instant."""
    return int(min(max(at_s / day_s, 0.0), LONGEST_DAY))
