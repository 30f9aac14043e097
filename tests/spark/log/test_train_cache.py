"""Trains in memory give way to whatever else needs the memory."""

import pyarrow as pa

from headgate.model.settings import Settings
from headgate.spark.log.budget import Budget
from headgate.spark.log.train_cache import TrainCache

TRAIN = pa.table({"v": pa.array(range(10), pa.int64())})
"""A train of eighty bytes."""


def test_trains_take_half_of_the_memory_and_less_where_others_need_it() -> None:
    waiting_bytes = [0]
    budget = Budget(Settings(memory_bytes=1000), windowed=lambda: waiting_bytes[0])
    cache = TrainCache(budget.train_room_bytes)
    for number in range(20):
        cache.put("s", number, TRAIN)
    assert cache.bytes == 480
    waiting_bytes[0] = 700
    cache.put("s", 20, TRAIN)
    assert cache.bytes == 160
    waiting_bytes[0] = 900
    cache.put("s", 21, TRAIN)
    assert cache.bytes == 0


def test_sources_wait_for_what_is_kept_in_memory() -> None:
    waiting_bytes = [349]
    budget = Budget(Settings(memory_bytes=1000), windowed=lambda: waiting_bytes[0])
    assert budget.pause_s() == 0.0
    waiting_bytes[0] = 425
    assert round(budget.pause_s(), 6) == 0.5
    with budget.holding(75):
        assert budget.pause_s() == 1.0
