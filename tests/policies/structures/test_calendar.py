"""The calendar queue, compared with a heap."""

import heapq

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.policies.structures.calendar import (
    ENTRY,
    calendar_queue,
    delete,
    insert,
    instant,
    take_due,
)

CAPACITY = 200


class Calendar:
    """A calendar of numbered entries, with the methods that tests need."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self.queue = calendar_queue(np.zeros(capacity, dtype=ENTRY))
        self._due = np.empty(capacity, dtype=np.int64)

    def due(self, now_s: float) -> list[int]:
        return sorted(self._due[: take_due(self.queue, now_s, self._due)].tolist())

    @property
    def days(self) -> int:
        return int(self.queue[-1]["days"][0])

    @property
    def held(self) -> int:
        return int(self.queue[-1]["held"][0])


scales = st.sampled_from([1e-7, 1e-3, 1.0, 1e4])
"""Instants a microsecond or hours apart: the length of a day must adapt."""

steps = st.lists(
    st.tuples(
        st.sampled_from(["insert", "insert", "insert many", "delete", "look"]),
        st.integers(0, CAPACITY - 1),
        st.floats(0.0, 50.0),
        scales,
    ),
    max_size=60,
)


@given(steps=steps)
def test_what_is_due_is_what_a_heap_would_give(
    steps: list[tuple[str, int, float, float]],
) -> None:
    calendar, heap, waits, now_s = Calendar(), [], {}, 0.0

    def put(entry: int, at_s: float) -> None:
        if entry not in waits:
            insert(calendar.queue, entry, at_s)
            waits[entry] = at_s
            heapq.heappush(heap, (at_s, entry))

    for what, entry, number, scale in steps:
        if what == "insert":
            put(entry, now_s + number * scale)
        elif what == "insert many":
            for other in range(0, CAPACITY, 3):
                put(other, now_s + (other * number % 7) * scale)
        elif what == "delete":
            delete(calendar.queue, entry)
            waits.pop(entry, None)
            assert instant(calendar.queue, entry) == np.inf
        else:
            now_s += number * scale
            expected = set()
            while heap and heap[0][0] <= now_s:
                at_s, first = heapq.heappop(heap)
                if waits.get(first) == at_s:
                    expected.add(first)
                    del waits[first]
            assert calendar.due(now_s) == sorted(expected)
        assert calendar.held == len(waits)
        for other, at_s in list(waits.items())[:5]:
            assert instant(calendar.queue, other) == at_s


@given(
    step_s=st.floats(1e-6, 1.0),
    cluster_s=st.sampled_from([0.0, 1e-6, 0.1]),
    seed=st.integers(0, 99),
)
def test_nothing_is_lost_over_thousands_of_looks_while_days_change_their_length(
    step_s: float, cluster_s: float, seed: int
) -> None:
    random, calendar, now_s = np.random.default_rng(seed), Calendar(), 0.0
    at_s = random.random(CAPACITY) * step_s * 300
    for entry in range(CAPACITY):
        insert(calendar.queue, entry, at_s[entry])
    for look in range(3000):
        now_s += step_s * (1.0 if look < 1500 else 0.01)
        due = calendar.due(now_s)
        assert due == np.flatnonzero(at_s <= now_s).tolist()
        for entry in due:
            at_s[entry] = now_s + step_s * 100 + random.random() * cluster_s
            insert(calendar.queue, entry, at_s[entry])


def test_a_past_instant_is_due_at_the_next_look() -> None:
    calendar = Calendar()
    assert calendar.due(100.0) == []
    insert(calendar.queue, 3, 7.0)
    assert calendar.due(100.0) == [3]


def test_an_entry_is_due_at_its_very_instant_and_not_before() -> None:
    calendar = Calendar()
    insert(calendar.queue, 0, 0.3)
    assert calendar.due(np.nextafter(0.3, 0.0)) == []
    assert calendar.due(0.3) == [0]


def test_entries_of_later_years_stay_when_their_day_comes_round() -> None:
    calendar = Calendar()
    for year in range(5):
        insert(calendar.queue, year, 0.5 + year * calendar.days)
    assert [calendar.due(1.0 + year * 16) for year in range(5)] == [[0], [1], [2], [3], [4]]


def test_a_leap_over_many_years_finds_everybody() -> None:
    calendar = Calendar()
    for entry in range(CAPACITY):
        insert(calendar.queue, entry, float(entry))
    assert calendar.due(1e12) == list(range(CAPACITY))


def test_the_ring_grows_with_its_entries_and_shrinks_again() -> None:
    calendar = Calendar(10_000)
    few = calendar.days
    for entry in range(10_000):
        insert(calendar.queue, entry, entry * 1e-3)
    many = calendar.days
    assert many >= 10_000
    for entry in range(9_990):
        delete(calendar.queue, entry)
    assert calendar.days < many // 16
    assert calendar.days >= few
    assert calendar.due(10.0) == list(range(9_990, 10_000))


@pytest.mark.parametrize("spread_s", [0.0, 1e-6, 1e-3, 1.0, 100.0])
def test_a_look_costs_the_same_on_average_however_instants_are_spread(spread_s: float) -> None:
    """Count the days and entries that are examined over a few turns of 2000 waiting entries."""
    random, calendar, now_s, work = np.random.default_rng(1), Calendar(2000), 0.0, 0
    counts = calendar.queue[-1][0]
    for entry in range(2000):
        insert(calendar.queue, entry, 1.0 + random.random() * spread_s)
    due_count, looks = 0, 0
    while due_count < 8000:
        now_s, looks, before = now_s + 1e-3 * (1.0 + spread_s), looks + 1, int(counts["work"])
        due = calendar.due(now_s)
        # If the count began anew, at worst everything was examined and rebuilt.
        done = int(counts["work"]) - before
        work += done if done >= 0 else 2 * (calendar.days + 2000)
        due_count += len(due)
        for entry in due:
            insert(calendar.queue, entry, now_s + 1.0 + random.random() * spread_s)
    assert work < 10 * (due_count + looks)
