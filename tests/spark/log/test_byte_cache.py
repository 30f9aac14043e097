"""Trains in memory give way to whatever else needs the memory."""

import pyarrow as pa

from headgate.model.settings import Settings
from headgate.spark.log.budget import Budget, FixedUsage
from headgate.spark.log.byte_cache import ByteCache

TRAIN = pa.table({"v": pa.array(range(10), pa.int64())})
"""A train of eighty bytes."""


def test_trains_take_half_of_the_memory_and_less_where_others_need_it() -> None:
    panes, budget = FixedUsage(), Budget(Settings(memory_bytes=1000))
    budget.measure(panes=panes)
    cache = ByteCache[int](budget.train_room_bytes)
    for number in range(20):
        cache.put(number, TRAIN)
    assert cache.bytes == 480
    panes.memory_bytes = 700
    cache.put(20, TRAIN)
    assert cache.bytes == 160
    panes.memory_bytes = 900
    cache.put(21, TRAIN)
    assert cache.bytes == 0


def test_sources_wait_for_what_is_kept_in_memory() -> None:
    panes, budget = FixedUsage(memory_bytes=349), Budget(Settings(memory_bytes=1000))
    budget.measure(panes=panes)
    assert budget.pause_s() == 0.0
    panes.memory_bytes = 425
    assert round(budget.pause_s(), 6) == 0.5
    with budget.holding(75):
        assert budget.pause_s() == 1.0


def test_the_bytes_are_those_of_the_tables_in_memory() -> None:
    cache = ByteCache[int]()
    for number in range(5):
        assert cache.get(number, lambda: TRAIN) is TRAIN
    cache.put(4, TRAIN.slice(0, 5))
    assert cache.bytes == 4 * 80 + 40
    cache.drop(lambda number: number < 3)
    assert cache.bytes == 80 + 40
    assert cache.find(0) is None
    cache.clear()
    assert cache.bytes == 0


def test_the_tables_that_were_used_last_stay() -> None:
    cache = ByteCache[int](lambda: 160)
    cache.put(0, TRAIN)
    cache.put(1, TRAIN)
    cache.find(0)
    cache.put(2, TRAIN)
    assert [number for number in range(3) if cache.find(number) is not None] == [0, 2]
