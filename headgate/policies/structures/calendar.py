"""A calendar queue: entries wait for an instant; all that are due are taken at once (Aurora §6.2).

Days of equal length hang in a ring; an entry is in the list of its day, whatever the year. Looking
for what is due walks the days since the last look. Insertion, deletion and taking are constant
amortised time: the ring has some days for every entry, and a day is about as long as the time
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
"""An entry: its instant, and its neighbours in the list of its day, −1 where there is none. The
first of a list has −2 − slot for `before`, and an entry that does not wait −1."""

FEWEST_DAYS = 16
DAYS_AHEAD = 16
LAST_DAY = 4e18
NONE = -1

STATE = np.dtype(
    [
        ("days_per_s", np.float64),
        ("day_s", np.float64),  # how long a day is
        ("earliest_s", np.float64),  # the earliest instant left in today's list
        ("since_s", np.float64),  # when counting began
        ("looked_s", np.float64),  # the last look
        ("days", np.int64),  # of the ring
        ("held", np.int64),  # entries
        ("today", np.int64),  # its number
        ("looks", np.int64),  # since counting began
        ("taken", np.int64),  # entries
        ("work", np.int64),  # days and entries that were looked at
    ]
)


def calendar_queue(entries: NDArray[Any]) -> tuple[Any, ...]:
    """Gives an empty queue for the entries of a record array, each of which waits once or not.

    Args:
        entries: has the fields of `ENTRY` and any others: who looks at an entry has the rest of the
            record at hand, which is one cache miss less.

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
    """Gives the instant that an entry waits for; ∞ where it does not wait."""
    entries, _, _ = queue
    return entries[entry].at_s if entries[entry].before != NONE else np.inf


@inlined
def insert(queue: Any, entry: int, at_s: float) -> None:
    """Lets an entry that does not wait yet wait for an instant; a past one is due at once."""
    _, heads, states = queue
    state = states[0]
    if 2 * state.held >= state.days and state.days < len(heads):
        _rebuild(queue, 2 * state.days, state.day_s)
    _link(queue, entry, at_s)
    state.held += 1


@inlined
def delete(queue: Any, entry: int) -> None:
    """Takes an entry out, if it waits."""
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
    """Fetches the day of an instant into the cache, for an entry that is about to be inserted."""
    _, heads, states = queue
    fetch(heads, _day(at_s, states[0].days_per_s) & (states[0].days - 1))


@inlined
def fetch_neighbour(queue: Any, at_s: float) -> None:
    """Fetches the entry that one for an instant will stand before, when its day is fetched."""
    entries, heads, states = queue
    slot = _day(at_s, states[0].days_per_s) & (states[0].days - 1)
    fetch(entries, max(heads[slot], 0))


@borrowing
def take_due(queue: Any, now_s: float, due: Ints) -> int:
    """Takes out all entries whose instant has come, in no certain order, and gives their number.

    Args:
        now_s: never before that of an earlier call.
        due: is filled with the entries; has room for all.
    """
    entries, heads, states = queue
    state = states[0]
    state.looks += 1
    state.looked_s = now_s
    today, days = state.today, state.days
    day = max(_day(now_s, state.days_per_s), today)
    if day == today and now_s < state.earliest_s:
        return 0
    taken, seen, earliest_s = 0, 0, np.inf
    first = max(today, day - days + 1)
    for each in range(first, day + 1):
        slot, earliest_s = each & (days - 1), np.inf
        entry, heads[slot] = heads[slot], NONE
        while entry >= 0:
            seen += 1
            after = entries[entry].after
            if entries[entry].at_s <= now_s:
                entries[entry].before = NONE
                due[taken] = entry
                taken += 1
            else:
                # Entries of later years count too: they are only looked at once too often.
                earliest_s = min(earliest_s, entries[entry].at_s)
                _push(entries, heads, slot, entry)
            entry = after
        # Who will be due soon is fetched meanwhile: of a list the first, the second, the third.
        fetch(entries, max(heads[(each + DAYS_AHEAD) & (days - 1)], 0))
        soon = max(heads[(each + DAYS_AHEAD // 2) & (days - 1)], 0)
        fetch(entries, max(entries[soon].after, 0))
        soon = max(heads[(each + DAYS_AHEAD // 4) & (days - 1)], 0)
        fetch(entries, max(entries[max(entries[soon].after, 0)].after, 0))
    state.earliest_s, state.today = earliest_s, day
    state.held -= taken
    state.taken += taken
    state.work += seen + day + 1 - first
    _adapt(queue, now_s)
    return taken


@borrowing
def _adapt(queue: Any, now_s: float) -> None:
    """Sets the length of a day anew when enough was counted, or when looks cost too much.

    A day as long as the time between two looks is safe, however instants cluster: a look then sees
    one list, and all lists together are seen once in as many looks as there are days. Other lengths
    are cheaper where instants are spread. So the safe length is taken where work has grown out of
    proportion. A rebuilding costs no more than was done since the last one.
    """
    state = queue[2][0]
    looks, taken, days = state.looks, state.taken, state.days
    too_much = state.work > 16 * (looks + taken) + 2 * days
    too_many = _has_too_many_days(state)
    if not (too_much or too_many or looks > 2 * days):
        return
    passed_s, day_s = now_s - state.since_s, state.day_s
    if passed_s > 0.0:
        day_s = passed_s / (looks if too_much else max(1, min(8 * looks, taken)))
    state.since_s = now_s
    state.looks = state.taken = state.work = 0
    if too_many or not 0.4 < day_s / state.day_s < 2.5:
        # Days are counted from time 0, so that their number must fit into an integer.
        day_s = max(day_s, 1e-12 * (1.0 + abs(now_s)))
        _rebuild(queue, days // 2 if too_many else days, day_s)


@inlined
def _has_too_many_days(state: Any) -> bool:
    return bool(16 * state.held < state.days and state.days > FEWEST_DAYS)


@borrowing
def _rebuild(queue: Any, days: int, day_s: float) -> None:
    """Hangs all entries into a ring of so many days of that length."""
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
    """Puts an entry before all others of a list."""
    head = heads[slot]
    # Without a head it is written to the entry itself, and then written over: a branch would have
    # to wait until the head is known.
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
    """Gives the number of the day of an instant; never a smaller one for a later instant."""
    return int(min(max(at_s * days_per_s, 0.0), LAST_DAY))
