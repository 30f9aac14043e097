"""The engine in virtual time: a heap of the calls by their ends, and one cursor per stream."""

import heapq
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from headgate.errors import ConfigRefused
from headgate.model.arrays import Floats
from headgate.model.events import ClockTicked, Event, StepFinished, TrainArrived
from headgate.model.network.graph import LONGEST_PATH
from headgate.model.network.network import Network
from headgate.model.network.unit_table import UnitTable
from headgate.model.plan import BoxCall
from headgate.simulation.kernel.path_call import run_train

NO_FATES = np.zeros(0, dtype=np.int8)


class SimulationEngine:
    """An engine that computes the outcome of calls instead of running them.

    Every tuple is a train of its own, so that a call can take any number of tuples. A call pays its
    overhead once and the cost of every member's tuples; the members of a fused call run one after
    the other inside it. The output of a producer arrives in its stream, and in timelines of that
    stream, when the call ends. Its response counts from the arrival of the original tuple.

    Args:
        arrivals: arrival times by stream, ascending, in seconds.
        trigger_s: by stream, how often its source is polled. A tuple is seen at the next multiple,
            but its response still counts from its arrival. Without an entry it is seen at once.
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
            np.ceil(times_s / period_s) * period_s if period_s else times_s
            for stream, times_s in zip(network.streams, self._arrivals, strict=True)
            for period_s in [(trigger_s or {}).get(stream.name, 0.0)]
        ]
        for name in arrivals:
            network.stream_number(name, where="arrivals")
        self._announced = [0] * len(self._arrivals)
        self._boxes = [_box(number, network, table) for number in range(len(network.paths))]
        fates = fates or {}
        self._fates = [
            np.array(fates[path.query.name], dtype=np.int8)
            if path.query.name in fates
            else NO_FATES
            for path in network.paths
        ]
        for path, outcomes in zip(network.paths, self._fates, strict=True):
            offered = len(self._arrivals[network.stream_number(path.stream)])
            if len(outcomes) and len(outcomes) < offered:
                raise ConfigRefused(
                    path=f"query '{path.query.name}'",
                    key="fates",
                    value=len(outcomes),
                    expected=f"one for each of the {offered} tuples",
                )
        self._fills = [
            [
                number
                for number, stream in enumerate(network.streams)
                if path.into in (stream.name, *stream.of)
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
        derived: list[tuple[int, Floats]] = []
        spent_s = float(self._table["overhead_s"][list(call.units)].max())
        departures = []
        for unit in call.units:
            departs_s, passed = np.empty(call.tuples), np.empty(call.tuples, dtype=np.int64)
            count, took_s = run_train(
                call.first_train, call.end_train, *self._boxes[unit], self._seed,
                self._fates[unit], departs_s, passed,
            )  # fmt: skip
            arrived_s = times_s[passed[:count]]
            derived += [(stream, arrived_s) for stream in self._fills[unit] if count]
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
        heapq.heappush(self._ends, (end_s, call.number, finished, derived))

    def next_event(self, wake_at_s: float) -> Event | None:
        """Advance to the next arrival, end of a call or alarm, and return it as an event.

        While every worker is busy, no decision is possible, so all arrivals until the next end of a
        call are one event. This halves the run time at high load, and the decisions are the same.
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
        _, _, finished, derived = heapq.heappop(self._ends)
        more_follow = bool(self._ends) and self._ends[0][0] <= ends_at_s
        self._next += [self._derived_train(*train) for train in derived]
        self._next.append(replace(finished, more_follow=more_follow))
        return self._next.popleft()

    def _derived_train(self, stream: int, arrived_s: Floats) -> TrainArrived:
        """Add the output of a producer to its stream, and return its arrival as an event."""
        self._arrivals[stream] = np.append(self._arrivals[stream], arrived_s)
        ones = np.ones(len(arrived_s), dtype=np.int64)
        return TrainArrived(self._now_s, stream, ones, arrived_s, arrived_s, more_follow=True)

    def _next_arrival(self) -> tuple[int, float]:
        stream, at_s = -1, np.inf
        for number, seen_s in enumerate(self._seen):
            first = self._announced[number]
            if first < len(seen_s) and seen_s[first] < at_s:
                stream, at_s = number, float(seen_s[first])
        return stream, at_s

    def _arrive(self, stream: int, until_s: float) -> TrainArrived:
        seen_s, first = self._seen[stream], self._announced[stream]
        end = int(np.searchsorted(seen_s, until_s, side="right"))
        self._announced[stream] = end
        arrived_s = self._arrivals[stream][first:end]
        self._now_s = max(self._now_s, float(seen_s[end - 1]))
        ones = np.ones(end - first, dtype=np.int64)
        return TrainArrived(self._now_s, stream, ones, arrived_s, arrived_s)


def _box(
    number: int, network: Network, table: UnitTable
) -> tuple[Floats, Floats, "np.typing.NDArray[np.int64]"]:
    """Return a path's costs, selectivities and operators.

    A path with an unmeasured operator counts as one operator, with the figures of its table row.
    """
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
