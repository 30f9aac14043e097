"""A calendar queue: entries wait for an instant; all due entries are taken at once (Aurora §6.2).

Days of equal length form a ring; an entry is in the list of its day, whatever the year. A look for
due entries walks the days since the last look. Insertion, deletion and taking need constant
amortized time: the ring has some days for every entry, and a day is about as long as the time
between two entries that fall due. So a look walks a few days, and most lists are empty.

A queue is a tuple of arrays, so that compiled policies can keep it in their memory.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from headgate.compiled import borrowing, inlined
from headgate.model.arrays import Ints
from headgate.policies.structures.cache_fetch import fetch

ENTRY = [("at_s", np.float64), ("before", np.int32), ("after", np.int32)]
"""An entry: its instant, and its neighbors in the list of its day, −1 if there is none. The first
entry of a list has −2 − slot in `before`; an entry that does not wait has −1 there."""

FEWEST_DAYS = 16
DAYS_AHEAD = 16
LAST_DAY = 4e18
NONE = -1

STATE = np.dtype(
    [
        ("days_per_s", np.float64),
        ("day_s", np.float64),  # length of a day
        ("earliest_s", np.float64),  # the earliest instant left in today's list
        ("since_s", np.float64),  # when counting began
        ("looked_s", np.float64),  # when the last look was
        ("days", np.int64),  # days in the ring
        ("held", np.int64),  # entries that wait
        ("today", np.int64),  # number of the day of the last look
        ("looks", np.int64),  # looks since counting began
        ("taken", np.int64),  # entries taken since then
        ("work", np.int64),  # days and entries visited since then
    ]
)


def calendar_queue(entries: NDArray[Any]) -> tuple[Any, ...]:
    """Return an empty queue for the entries of a record array. Each entry waits at most once.

    Args:
        entries: records with the fields of `ENTRY` and any others. A visit to an entry then brings
            the rest of its record into the cache, which saves a cache miss.

    >>> queue, due = calendar_queue(np.zeros(3, dtype=ENTRY)), np.empty(3, dtype=np.int64)
    >>> for entry, at_s in enumerate((2.0, 1.0, 3.0)):
    ...     insert(queue, entry, at_s)
    >>> delete(queue, 0)
    >>> due[: take_due(queue, 2.5, due)]
    array([1])
    """
    most_days = FEWEST_DAYS
    while most_days < 4 * len(entries):
        most_days *= 2
    entries["before"] = NONE
    state = np.zeros(1, dtype=STATE)
    state["day_s"] = state["days_per_s"] = 1.0
    state["earliest_s"], state["days"] = np.inf, FEWEST_DAYS
    return entries, np.full(most_days, NONE, dtype=np.int32), state


@inlined
def instant(queue: Any, entry: int) -> float:
    """Return the instant that an entry waits for; ∞ if it does not wait."""
    entries, _, _ = queue
    return entries[entry].at_s if entries[entry].before != NONE else np.inf


@inlined
def insert(queue: Any, entry: int, at_s: float) -> None:
    """Insert an entry that does not wait yet, for an instant; a past instant is due at once."""
    _, heads, states = queue
    state = states[0]
    if 2 * state.held >= state.days and state.days < len(heads):
        _rebuild(queue, 2 * state.days, state.day_s)
    _link(queue, entry, at_s)
    state.held += 1


@inlined
def delete(queue: Any, entry: int) -> None:
    """Remove an entry, if it waits."""
    entries, _, states = queue
    state = states[0]
    if entries[entry].before == NONE:
        return
    _unlink(queue, entry)
    state.held -= 1
    if _has_too_many_days(state):
        _rebuild(queue, state.days // 2, state.day_s)


@inlined
def fetch_day(queue: Any, at_s: float) -> None:
    """Fetch the day of an instant into the cache, for an entry that is about to be inserted."""
    _, heads, states = queue
    fetch(heads, _day(at_s, states[0].days_per_s) & (states[0].days - 1))


@inlined
def fetch_neighbour(queue: Any, at_s: float) -> None:
    """Fetch the entry that a new one will precede, once `fetch_day` has fetched its day."""
    entries, heads, states = queue
    slot = _day(at_s, states[0].days_per_s) & (states[0].days - 1)
    fetch(entries, max(heads[slot], 0))


@borrowing
def take_due(queue: Any, now_s: float, due: Ints) -> int:
    """Remove all entries whose instant has come, in no particular order, and return their number.

    Args:
        now_s: the time, never earlier than in a previous call.
        due: an array to fill with the entries, with room for all of them.
    """
    entries, heads, states = queue
    state = states[0]
    state.looks += 1
    state.looked_s = now_s
    today, days = state.today, state.days
    day = max(_day(now_s, state.days_per_s), today)
    if day == today and now_s < state.earliest_s:
        return 0
    count, seen, earliest_s = 0, 0, np.inf
    first = max(today, day - days + 1)
    for number in range(first, day + 1):
        slot, earliest_s = number & (days - 1), np.inf
        entry, heads[slot] = heads[slot], NONE
        while entry >= 0:
            seen += 1
            after = entries[entry].after
            if entries[entry].at_s <= now_s:
                entries[entry].before = NONE
                due[count] = entry
                count += 1
            else:
                # Entries of later years count too: at worst they are visited once too often.
                earliest_s = min(earliest_s, entries[entry].at_s)
                _push(entries, heads, slot, entry)
            entry = after
        # Entries due soon are fetched meanwhile: the first, the second, the third of a list.
        fetch(entries, max(heads[(number + DAYS_AHEAD) & (days - 1)], 0))
        soon = max(heads[(number + DAYS_AHEAD // 2) & (days - 1)], 0)
        fetch(entries, max(entries[soon].after, 0))
        soon = max(heads[(number + DAYS_AHEAD // 4) & (days - 1)], 0)
        fetch(entries, max(entries[max(entries[soon].after, 0)].after, 0))
    state.earliest_s, state.today = earliest_s, day
    state.held -= count
    state.taken += count
    state.work += seen + day + 1 - first
    _adapt(queue, now_s)
    return count


@borrowing
def _adapt(queue: Any, now_s: float) -> None:
    """Change the length of a day when enough has been counted, or when looks cost too much.

    A day as long as the time between two looks is safe, however instants cluster: a look then
    visits one list, and all lists together are visited once in as many looks as there are days.
    Other lengths are cheaper where instants are spread out. So the safe length is used where work
    has grown out of proportion. A rebuild costs no more than the work since the last one.
    """
    state = queue[2][0]
    looks, entries_taken, days = state.looks, state.taken, state.days
    too_much = state.work > 16 * (looks + entries_taken) + 2 * days
    too_many = _has_too_many_days(state)
    if not (too_much or too_many or looks > 2 * days):
        return
    passed_s, day_s = now_s - state.since_s, state.day_s
    if passed_s > 0.0:
        day_s = passed_s / (looks if too_much else max(1, min(8 * looks, entries_taken)))
    state.since_s = now_s
    state.looks = state.taken = state.work = 0
    if too_many or not 0.4 < day_s / state.day_s < 2.5:
        # Days are counted from time 0, and their number must fit into an integer.
        day_s = max(day_s, 1e-12 * (1.0 + abs(now_s)))
        _rebuild(queue, days // 2 if too_many else days, day_s)


@inlined
def _has_too_many_days(state: Any) -> bool:
    return bool(16 * state.held < state.days and state.days > FEWEST_DAYS)


@borrowing
def _rebuild(queue: Any, days: int, day_s: float) -> None:
    """Move all entries into a ring of `days` days of length `day_s`."""
    entries, heads, states = queue
    state, chain = states[0], NONE
    for slot in range(state.days):
        entry = heads[slot]
        while entry >= 0:
            after = entries[entry].after
            entries[entry].after = chain
            chain, entry = entry, after
        heads[slot] = NONE
    state.days, state.day_s, state.days_per_s = days, day_s, 1.0 / day_s
    state.today, state.earliest_s = _day(state.looked_s, state.days_per_s), np.inf
    while chain >= 0:
        after = entries[chain].after
        _link(queue, chain, entries[chain].at_s)
        chain = after


@inlined
def _link(queue: Any, entry: int, at_s: float) -> None:
    entries, heads, states = queue
    state = states[0]
    day = max(_day(at_s, state.days_per_s), state.today)
    entries[entry].at_s = at_s
    _push(entries, heads, day & (state.days - 1), entry)
    if day == state.today:
        state.earliest_s = min(state.earliest_s, at_s)


@inlined
def _push(entries: Any, heads: Any, slot: int, entry: int) -> None:
    """Insert an entry before all others of a list."""
    head = heads[slot]
    # Without a head, this writes to the entry itself, and the next line overwrites it. A branch
    # would have to wait until the head is known.
    entries[head if head >= 0 else entry].before = entry
    entries[entry].before, entries[entry].after = -2 - slot, head
    heads[slot] = entry


@inlined
def _unlink(queue: Any, entry: int) -> None:
    entries, heads, _ = queue
    before, after = entries[entry].before, entries[entry].after
    if before >= 0:
        entries[before].after = after
    else:
        heads[-2 - before] = after
    entries[after if after >= 0 else entry].before = before
    entries[entry].before = NONE


@inlined
def _day(at_s: float, days_per_s: float) -> int:
    """Return the number of the day of an instant; a later instant never has a smaller number."""
    return int(min(max(at_s * days_per_s, 0.0), LAST_DAY))
