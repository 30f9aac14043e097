"""Queues of units by their oldest tuple, compared with a sorted list."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.policies.structures.oldest_first import oldest_first, put, take

UNITS, QUEUES = 40, 3

heads_s = (
    st.integers(0, 5).map(float)
    | st.floats(0.0, 1e6)
    | st.floats(1e9, 1e9 + 1e-3)
    | st.just(np.inf)
)


class Queues:
    """Queues of units, and the units that should be in them."""

    def __init__(self, units: int = UNITS, queues: int = QUEUES) -> None:
        self.home = np.arange(units) % queues
        self.memory = oldest_first(self.home, queues)
        self.head_of: dict[int, float] = {}

    def put(self, unit: int, head_s: float) -> None:
        if unit in self.head_of:
            take(self.memory, unit)
        put(self.memory, unit, head_s)
        self.head_of[unit] = head_s
        self.check()

    def take(self, unit: int) -> None:
        if unit in self.head_of:
            take(self.memory, unit)
            del self.head_of[unit]
            self.check()

    def check(self) -> None:
        queues = self.memory[1]
        for queue in range(len(queues)):
            inside = [
                (head_s, unit) for unit, head_s in self.head_of.items() if self.home[unit] == queue
            ]
            if inside:
                assert (queues["front_s"][queue], queues["front"][queue]) == min(inside)
            else:
                assert queues["front"][queue] == -1


@pytest.mark.slow
@given(
    steps=st.lists(
        st.tuples(st.integers(0, UNITS - 1), st.none() | heads_s), min_size=1, max_size=120
    )
)
def test_the_unit_with_the_oldest_tuple_is_in_front_whatever_comes_and_goes(
    steps: list[tuple[int, float | None]],
) -> None:
    queues = Queues()
    for unit, head_s in steps:
        if head_s is None:
            queues.take(unit)
        else:
            queues.put(unit, head_s)


@pytest.mark.parametrize("streams", [1, 7, 200])
def test_units_are_served_oldest_tuple_first_while_tuples_keep_coming(streams: int) -> None:
    units, random = 200, np.random.default_rng(streams)
    times_s = np.cumsum(random.exponential(1.0, (streams, 12)), axis=1)
    queues, cursors = Queues(units, queues=1), np.zeros(units, dtype=np.int64)
    served = []
    for unit in range(units):
        queues.put(unit, times_s[unit % streams, 0])
    while queues.head_of:
        unit = int(queues.memory[1]["front"][0])
        served.append((queues.head_of[unit], unit))
        cursors[unit] += 1
        queues.take(unit)
        if cursors[unit] < 12:
            queues.put(unit, times_s[unit % streams, cursors[unit]])
    assert served == sorted(served)
    assert len(served) == units * 12


def test_a_tie_goes_to_the_smaller_unit_number_in_whatever_order_they_come() -> None:
    queues = Queues(5, queues=1)
    for unit in (3, 0, 4, 1, 2):
        queues.put(unit, 1.0)
    order = []
    while queues.head_of:
        order.append(int(queues.memory[1]["front"][0]))
        queues.take(order[-1])
    assert order == [0, 1, 2, 3, 4]
