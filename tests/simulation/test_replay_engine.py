"""The engine of a replay: calls slow each other, the machine has a pace, the run ends in time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
import pytest

from headgate.model.events import (
    ClockTicked,
    Event,
    NetworkChanged,
    SheddingChanged,
    StepFinished,
    TrainArrived,
)
from headgate.model.network.network import Network, Path
from headgate.model.network.operator import Operator
from headgate.model.plan import BoxCall
from headgate.model.query import Query, QueryClass
from headgate.model.stream import Stream
from headgate.simulation.loop.replay import ReplayEngine, ResultCounts

SELECT = (Operator(kind="select"),)
NETWORK = Network(
    (Stream(name="s", format="rate"),),
    (QueryClass(name="H", priority=1),),
    tuple(
        Path(query=Query(name=name, sql="SELECT 1", query_class="H"), stream="s", operators=SELECT)
        for name in "ab"
    ),
)
TRAINS: list[Event] = [
    TrainArrived(at_s, 0, np.array([4]), np.array([at_s - 1.0]), np.array([at_s - 0.5]))
    for at_s in (10.0, 20.0)
]

CUT = Network(
    (Stream(name="s", format="rate"), Stream(name="q__queue", format="queue")),
    (QueryClass(name="H", priority=1),),
    tuple(
        Path(
            query=Query(name=name, sql="SELECT 1", query_class="H"),
            stream=stream,
            operators=SELECT,
            into=into,
        )
        for name, stream, into in (("q__first", "s", "q__queue"), ("q", "q__queue", None))
    ),
)


@dataclass
class Fixed:
    """Costs of a second per call."""

    loop_s: float = 0.0
    start_s: float = 0.0
    crowding: float = 0.0
    pace: Callable[[float], float] = lambda at_s: 1.0
    new: int = 0

    def call(self, call: BoxCall, outs: Sequence[int], new: int, at_s: float) -> tuple[float, str]:
        self.new += new
        return 1.0, "driver"


def engine(costs: Fixed, ends_at_s: float = inf) -> ReplayEngine:
    upto = np.array([0.0, 4.0, 8.0])
    outputs = [
        ResultCounts(upto, np.array([0.0, 2.0, 2.5])),
        ResultCounts(upto, np.array([0.0, 0.0, 4.0])),
    ]
    return ReplayEngine(NETWORK, TRAINS, [7], dict(enumerate(outputs)), costs, ends_at_s)


def call(number: int, unit: int) -> BoxCall:
    return BoxCall(number, (unit,), 0, 7, 8, 4)


def test_calls_beside_each_other_slow_each_other() -> None:
    run = engine(Fixed(crowding=0.5))
    assert isinstance(run.next_event(inf), TrainArrived)
    run.start(call(0, 0))
    run.start(call(1, 1))
    ends = [run.next_event(inf), run.next_event(inf)]
    assert [event.at_s for event in ends if event] == pytest.approx([11.5, 11.5])


def test_a_slow_machine_takes_longer_as_long_as_it_is_slow() -> None:
    run = engine(Fixed(pace=lambda at_s: 2.0 if at_s < 11.0 else 1.0))
    run.next_event(inf)
    run.start(call(0, 0))
    event = run.next_event(inf)
    assert isinstance(event, StepFinished)
    assert (event.at_s, event.seconds) == (pytest.approx(11.5), pytest.approx(1.5))


def test_what_a_unit_drops_is_missing_from_its_calls_from_a_train_on() -> None:
    run = engine(Fixed())
    changes = [SheddingChanged(9.0, 0, 7, 0.5, "overload"), SheddingChanged(9.0, 0, 8, 1.0, "more")]
    assert run.shed(changes) == changes
    run.next_event(inf)
    run.next_event(inf)
    run.start(BoxCall(0, (0, 1), 0, 7, 9, 8))
    event = run.next_event(inf)
    assert isinstance(event, StepFinished)
    assert event.tuples_out == (1, 4)  # of 2 and 0.5 results, and of 0 and 4
    assert event.shed == (6, 0)


def test_results_are_those_of_the_trains_and_count_from_arrival() -> None:
    costs = Fixed(start_s=0.25)
    run = engine(costs)
    run.next_event(inf)
    run.start(call(0, 0))
    event = run.next_event(inf)
    assert isinstance(event, StepFinished)
    assert event.tuples_out == (2,)
    assert event.seconds == pytest.approx(1.0)
    assert event.responses_s[0] == pytest.approx([11.25 - 9.25, 11.25 - 9.75])
    assert costs.new == 1


def test_the_loop_hears_one_event_after_the_other() -> None:
    run = engine(Fixed(loop_s=3.0))
    run.next_event(inf)
    assert run.now_s() == 13.0
    run.start(call(0, 0))
    ended = run.next_event(inf)
    assert ended is not None
    assert (ended.at_s, run.now_s()) == (14.0, 17.0)
    assert isinstance(run.next_event(18.0), ClockTicked)
    assert run.now_s() == 21.0
    arrived = run.next_event(inf)
    assert arrived is not None
    assert (arrived.at_s, run.now_s()) == (20.0, 24.0)
    assert run.next_event(inf) is None


def test_a_run_that_was_broken_off_ends_there() -> None:
    run = engine(Fixed(), ends_at_s=15.0)
    assert run.next_event(inf) is not None
    assert run.next_event(inf) is None


def test_what_a_first_segment_makes_arrives_for_the_next_when_it_is_done() -> None:
    # Of 4 tuples 2 pass, of the next 4 none; of the first two that pass one is a result.
    outputs = [
        ResultCounts(np.array([0.0, 4.0, 8.0]), np.array([0.0, 2.0, 2.0])),
        ResultCounts(np.array([0.0, 2.0, 9.0]), np.array([0.0, 1.0, 1.0])),
    ]
    run = ReplayEngine(CUT, TRAINS, [7, 3], dict(enumerate(outputs)), Fixed())
    run.next_event(inf)
    run.start(BoxCall(0, (0,), 0, 7, 8, 4))
    passed, ended = run.next_event(inf), run.next_event(inf)
    assert isinstance(passed, TrainArrived)
    assert isinstance(ended, StepFinished)
    assert (passed.at_s, passed.stream, passed.tuples.tolist()) == (11.0, 1, [2])
    assert (passed.head_arrived_at_s[0], passed.mean_arrived_at_s[0]) == (9.25, 9.5)
    assert (ended.tuples_out, len(ended.responses_s[0])) == ((2,), 0)  # no result yet
    run.start(BoxCall(1, (1,), 1, 3, 4, 2))
    ended = run.next_event(inf)
    assert isinstance(ended, StepFinished)
    assert ended.tuples_out == (1,)
    assert ended.responses_s[0] == pytest.approx([12.0 - 9.5])
    assert isinstance(run.next_event(inf), TrainArrived)
    run.start(BoxCall(2, (0,), 0, 8, 9, 4))
    assert isinstance(run.next_event(inf), StepFinished)  # nothing passes, nothing arrives
    assert run.next_event(inf) is None


def test_a_cut_query_that_comes_again_begins_where_its_queue_ends_in_the_simulation() -> None:
    again = NetworkChanged(30.0, CUT, {0: 9, 1: 17}, {}, {})
    everything = ResultCounts(np.array([0.0, 8.0]), np.array([0.0, 8.0]))
    run = ReplayEngine(CUT, [*TRAINS, again], [7, 3], {0: everything, 1: everything}, Fixed())
    run.next_event(inf)
    run.start(BoxCall(0, (0,), 0, 7, 8, 4))
    heard = [run.next_event(inf) for _ in range(4)]
    assert isinstance(heard[-1], NetworkChanged)
    assert heard[-1].cursors == {0: 9, 1: 4}  # one train is there, number 3


def test_a_dropped_query_stays_until_its_call_has_ended_in_the_simulation() -> None:
    gone = NetworkChanged(10.5, NETWORK.only({0}), {}, {}, {}, dropped=("b",))
    everything = ResultCounts(np.array([0.0, 8.0]), np.array([0.0, 8.0]))
    happenings = [TRAINS[0], gone, TRAINS[1]]
    paths = dict(enumerate(NETWORK.paths))
    run = ReplayEngine(
        gone.network, happenings, [7], {0: everything, 1: everything}, Fixed(), paths=paths
    )
    run.next_event(inf)
    run.start(BoxCall(0, (0, 1), 0, 7, 8, 4))
    heard = [run.next_event(inf) for _ in range(3)]
    assert [type(event) for event in heard] == [StepFinished, NetworkChanged, TrainArrived]
