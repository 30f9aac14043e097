"""The shared buffer of a stream, compared with a plain list of trains."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headgate.model.events import TrainArrived
from headgate.scheduler.queues import StreamBuffer

Train = tuple[int, float, float]
"""tuples, arrival of the oldest, mean arrival"""


def arrived(trains: list[Train]) -> TrainArrived:
    tuples, heads_s, means_s = (np.array(column) for column in zip(*trains, strict=True))
    return TrainArrived(0.0, 0, tuples.astype(np.int64), heads_s, means_s)


def buffer_of(*trains: Train, first_train: int = 0) -> StreamBuffer:
    buffer = StreamBuffer(first_train)
    buffer.append(arrived(list(trains)))
    return buffer


def test_pending_head_and_mean_of_three_trains() -> None:
    buffer = buffer_of((3, 0.5, 0.6), (1, 1.0, 1.0), (2, 2.0, 2.5))
    cursors = np.array([0, 1, 2, 3])
    assert buffer.pending(cursors).tolist() == [6, 3, 2, 0]
    assert buffer.head_arrived_at_s(cursors).tolist() == [0.5, 1.0, 2.0, np.inf]
    assert buffer.mean_arrived_at_s(cursors) == pytest.approx([7.8 / 6, 2.0, 2.5, np.inf])


def test_a_buffer_that_resumes_counts_on_from_its_first_train() -> None:
    buffer = buffer_of((3, 0.5, 0.6), (4, 1.0, 1.0), first_train=7)
    assert buffer.end == 9
    assert buffer.pending(np.array([7, 8, 9])).tolist() == [7, 4, 0]
    assert buffer.tuples(7, 9) == 7


def test_a_call_takes_as_many_whole_trains_as_fit() -> None:
    buffer = buffer_of(*[(2, 0.0, 0.0)] * 5)
    assert [buffer.train_after(0, tuples) for tuples in (4, 5, 100)] == [2, 2, 5]
    assert buffer.train_after(3, 2) == 4


def test_a_call_takes_at_least_one_train_however_large() -> None:
    assert buffer_of((1000, 0.0, 0.0), (1, 0.0, 0.0)).train_after(0, 10) == 1


def test_the_mean_arrival_is_right_to_a_millisecond_after_a_billion_tuples_of_our_days() -> None:
    now_s = 1.8e9  # seconds since 1970
    buffer = buffer_of((10**9, now_s, now_s), (1, now_s + 60.5, now_s + 60.5))
    assert buffer.mean_arrived_at_s(np.array([1])) == pytest.approx([now_s + 60.5], abs=1e-3, rel=0)


def test_trains_that_were_forgotten_are_known_again() -> None:
    model = [(1 + number % 3, float(number), number + 0.5) for number in range(2000)]
    buffer = buffer_of(*model, first_train=5)
    buffer.drop(5 + 1500)
    buffer.recall(5 + 700, arrived(model[700:]))
    whole = buffer_of(*model, first_train=5)
    cursors = np.array([705, 1000, 1504, 1505, 1506, 2005])
    assert buffer.pending(cursors).tolist() == whole.pending(cursors).tolist()
    assert buffer.mean_arrived_at_s(cursors) == pytest.approx(whole.mean_arrived_at_s(cursors))
    heads_s = whole.head_arrived_at_s(cursors).tolist()
    assert buffer.head_arrived_at_s(cursors).tolist() == heads_s
    assert [buffer.train_after(cursor, 100) for cursor in cursors[:-1]] == [
        whole.train_after(cursor, 100) for cursor in cursors[:-1]
    ]
    buffer.append(arrived([(4, 9.0, 9.0)]))
    assert buffer.tuples(705, 2006) == whole.tuples(705, 2005) + 4


trains = st.tuples(st.integers(1, 9), st.floats(0.0, 1e3), st.floats(0.0, 1e3))
appends = st.tuples(st.sampled_from([1, 2, 3, 700, 1025]), trains, trains)
drops = st.floats(0.0, 1.0)


@given(
    first_train=st.integers(0, 5),
    happenings=st.lists(st.one_of(appends, drops), min_size=1, max_size=8),
    looks=st.lists(st.floats(0.0, 1.0), min_size=1, max_size=4),
    tuples=st.integers(1, 3000),
)
@example(  # every train has passed, and the buffer was just full
    first_train=0,
    happenings=[(1025, (1, 0.0, 0.0), (1, 0.0, 0.0)), 1.0],
    looks=[1.0],
    tuples=1,
)
def test_a_buffer_answers_as_a_plain_list_of_trains_would(
    first_train: int,
    happenings: list[tuple[int, Train, Train] | float],
    looks: list[float],
    tuples: int,
) -> None:
    buffer, model, passed = StreamBuffer(first_train), list[Train](), 0
    for happening in happenings:
        if isinstance(happening, tuple):
            count, one, other = happening
            batch = [one if number % 3 else other for number in range(count)]
            buffer.append(arrived(batch))
            model += batch
        else:
            passed += int(happening * (len(model) - passed))
            buffer.drop(first_train + passed)
        cursors = [passed + int(look * (len(model) - passed)) for look in looks]
        numbers = np.array([first_train + cursor for cursor in cursors])
        waiting = [model[cursor:] for cursor in cursors]
        assert buffer.end == first_train + len(model)
        assert buffer.pending(numbers).tolist() == [sum(t[0] for t in rest) for rest in waiting]
        heads_s = [rest[0][1] if rest else np.inf for rest in waiting]
        assert buffer.head_arrived_at_s(numbers).tolist() == heads_s
        means_s = [
            sum(t[0] * t[2] for t in rest) / sum(t[0] for t in rest) if rest else np.inf
            for rest in waiting
        ]
        assert buffer.mean_arrived_at_s(numbers) == pytest.approx(means_s, rel=1e-6, abs=1e-6)
        for cursor, rest in zip(cursors, waiting, strict=True):
            if rest:
                end = taken_by_list(rest, tuples)
                assert (
                    buffer.train_after(first_train + cursor, tuples) == first_train + cursor + end
                )
                assert buffer.tuples(first_train + cursor, first_train + cursor + end) == sum(
                    t[0] for t in rest[:end]
                )


def taken_by_list(rest: list[Train], tuples: int) -> int:
    """Count the whole trains that fit, at least one."""
    tuple_count, end = 0, 0
    while end < len(rest) and (end == 0 or tuple_count + rest[end][0] <= tuples):
        tuple_count += rest[end][0]
        end += 1
    return end
