"""The engine in virtual time: a heap of what ends when, and arrivals behind one cursor a stream."""

import heapq
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from headgate.errors import ConfigRefused
from headgate.model.arrays import Floats
from headgate.model.events import ClockTicked, Event, StepFinished, TrainArrived
from headgate.model.graph import LONGEST_PATH
from headgate.model.network import Network
from headgate.model.plan import BoxCall
from headgate.model.unit_table import UnitTable
from headgate.simulation.kernel.path_call import run_train

NO_FATES = np.zeros(0, dtype=np.int8)


class SimulationEngine:
    """Answers calls by arithmetic.

    A tuple is a train of its own, so that any number of tuples can be taken. A call costs its
    overhead once and every member's tuples at their cost; members of a fused call run one after
    the other inside it. What a producer makes arrives in its stream, and in timelines of that, when
    the call ends, and counts from the arrival of the tuple that it was made of.

    Args:
        arrivals: arrival times by stream, ascending, in seconds.
        trigger_s: by stream, how often its source is asked; a tuple is seen at the next multiple,
            and its response counts from its arrival all the same. Without it, it is seen at once.
        together: results leave when the whole call is done, as they do from a Spark job; else each
            leaves when it is computed.
        fates: for a worked example, the outcome of every tuple by query name.
    """

    def __init__(
        self,
        network: Network,
        table: UnitTable,
        arrivals: Mapping[str, Floats],
        *,
        seed: int = 0,
        workers: int = 1,
        trigger_s: Mapping[str, float] | None = None,
        together: bool = False,
        fates: Mapping[str, Sequence[int]] | None = None,
        progress: Callable[[float], None] = lambda now_s: None,
    ) -> None:
        self._table, self._seed, self._workers = table, seed, workers
        self._together, self._progress = together, progress
        self._arrivals = [arrivals.get(stream.name, np.zeros(0)) for stream in network.streams]
        for stream, times_s in zip(network.streams, self._arrivals, strict=True):
            if len(times_s) > 1 and np.any(np.diff(times_s) < 0):
                raise ConfigRefused(
                    path=f"stream '{stream.name}'",
                    key="arrivals",
                    value=None,
                    expected="in ascending order of time",
                )
        self._seen = [
            np.ceil(times_s / each_s) * each_s if each_s else times_s
            for stream, times_s in zip(network.streams, self._arrivals, strict=True)
            for each_s in [(trigger_s or {}).get(stream.name, 0.0)]
        ]
        for name in arrivals:
            network.stream_number(name, where="arrivals")
        self._told = [0] * len(self._arrivals)
        self._boxes = [_box(number, network, table) for number in range(len(network.paths))]
        fates = fates or {}
        self._fates = [
            np.array(fates[path.query.name], dtype=np.int8)
            if path.query.name in fates
            else NO_FATES
            for path in network.paths
        ]
        for path, own in zip(network.paths, self._fates, strict=True):
            offered = len(self._arrivals[network.stream_number(path.stream)])
            if len(own) and len(own) < offered:
                raise ConfigRefused(
                    path=f"query '{path.query.name}'",
                    key="fates",
                    value=len(own),
                    expected=f"one for each of the {offered} tuples",
                )
        self._fills = [
            [
                number
                for number, each in enumerate(network.streams)
                if path.into in (each.name, *each.of)
            ]
            for path in network.paths
        ]
        self._ends: list[tuple[float, int, StepFinished, list[tuple[int, Floats]]]] = []
        self._next: deque[Event] = deque()
        self._now_s = 0.0

    def now_s(self) -> float:
        return self._now_s

    def start(self, call: BoxCall) -> None:
        times_s = self._arrivals[call.stream]
        begun_s, outs, responses = self._now_s, [], []
        made: list[tuple[int, Floats]] = []
        spent_s = float(self._table["overhead_s"][list(call.units)].max())
        departures = []
        for unit in call.units:
            departs_s, passed = np.empty(call.tuples), np.empty(call.tuples, dtype=np.int64)
            count, took_s = run_train(
                call.first_train, call.end_train, *self._boxes[unit], self._seed,
                self._fates[unit], departs_s, passed,
            )  # fmt: skip
            arrived_s = times_s[passed[:count]]
            made += [(stream, arrived_s) for stream in self._fills[unit] if count]
            left_s = departs_s[:count] + spent_s
            nothing = left_s[:0]
            departures.append((nothing, nothing) if self._fills[unit] else (left_s, arrived_s))
            spent_s += took_s
            outs.append(count)
        for departs_s, arrived_s in departures:
            left_s = np.full(len(departs_s), spent_s) if self._together else departs_s
            responses.append(begun_s + left_s - arrived_s)
        end_s = begun_s + spent_s
        finished = StepFinished(end_s, call, spent_s, tuple(outs), tuple(responses))
        heapq.heappush(self._ends, (end_s, call.number, finished, made))

    def next_event(self, wake_at_s: float) -> Event | None:
        """Advances to the next arrival, end of a call or alarm.

        While every worker is busy no decision can fall, so arrivals up to the next end come as one
        event: half the run time at high load, and the same decisions.
        """
        if self._next:
            return self._next.popleft()
        ends_at_s = self._ends[0][0] if self._ends else np.inf
        stream, arrives_at_s = self._next_arrival()
        if min(ends_at_s, arrives_at_s) == np.inf and not self._ends:
            return None
        if wake_at_s < min(ends_at_s, arrives_at_s):
            self._now_s = wake_at_s
            return ClockTicked(wake_at_s)
        if arrives_at_s <= ends_at_s:
            busy = len(self._ends) >= self._workers
            event = self._arrive(stream, min(ends_at_s, wake_at_s) if busy else arrives_at_s)
            next_s = min(self._next_arrival()[1], ends_at_s)
            return replace(event, more_follow=next_s <= event.at_s)
        self._now_s = ends_at_s
        self._progress(ends_at_s)
        _, _, finished, made = heapq.heappop(self._ends)
        more_follow = bool(self._ends) and self._ends[0][0] <= ends_at_s
        self._next += [self._made(*each) for each in made]
        self._next.append(replace(finished, more_follow=more_follow))
        return self._next.popleft()

    def _made(self, stream: int, arrived_s: Floats) -> TrainArrived:
        """Return the arrival of what a producer has made, with what follows it at this instant."""
        self._arrivals[stream] = np.append(self._arrivals[stream], arrived_s)
        ones = np.ones(len(arrived_s), dtype=np.int64)
        return TrainArrived(self._now_s, stream, ones, arrived_s, arrived_s, more_follow=True)

    def _next_arrival(self) -> tuple[int, float]:
        stream, at_s = -1, np.inf
        for number, seen_s in enumerate(self._seen):
            told = self._told[number]
            if told < len(seen_s) and seen_s[told] < at_s:
                stream, at_s = number, float(seen_s[told])
        return stream, at_s

    def _arrive(self, stream: int, until_s: float) -> TrainArrived:
        seen_s, told = self._seen[stream], self._told[stream]
        end = int(np.searchsorted(seen_s, until_s, side="right"))
        self._told[stream] = end
        arrived_s = self._arrivals[stream][told:end]
        self._now_s = max(self._now_s, float(seen_s[end - 1]))
        ones = np.ones(end - told, dtype=np.int64)
        return TrainArrived(self._now_s, stream, ones, arrived_s, arrived_s)


def _box(
    number: int, network: Network, table: UnitTable
) -> tuple[Floats, Floats, "np.typing.NDArray[np.int64]"]:
    """Gives a path's costs, selectivities and operators; whole from the table where not apart."""
    operators = network.paths[number].operators
    if any(operator.cost_s is None or operator.selectivity is None for operator in operators):
        costs_s = [float(table["box_cost_s"][number])]
        selectivities = [float(table["box_selectivity"][number])]
    else:
        costs_s = [operator.cost_s or 0.0 for operator in operators]
        selectivities = [
            1.0 if operator.selectivity is None else operator.selectivity for operator in operators
        ]
    numbers = [
        number * LONGEST_PATH + position if operator.attribute is None else -1 - operator.attribute
        for position, operator in enumerate(operators[: len(costs_s)])
    ]
    return np.array(costs_s), np.array(selectivities), np.array(numbers, dtype=np.int64)
