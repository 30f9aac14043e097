"""Sharaf's testbed at query level in SimPy, written for speed, to compare the kernel with.

It has the kernel's data structures: per query a cursor into the one stream, static priorities as
ranks with a bit for each query that waits, Φ W over arrays for `bsd`. The bits are one integer, so
that an arrival, which makes every query ready, costs one assignment.

There are two models. The whole model does what the kernel does: every box call is an event, a
random number is drawn when a box runs, by the same hash, and the figures of a report are updated
when a tuple leaves. The lean model does as little as possible: a call of all boxes is one event,
the fate of a tuple was drawn beforehand and is looked up, and only the results and their times are
recorded.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from math import inf, log

import numpy as np
import simpy

from headgate.metrics.tally import BINS, SMALLEST, STEP
from headgate.model.arrays import Floats
from headgate.model.network.network import Network
from headgate.model.network.operator import Operator
from headgate.workloads.random_hash import chance

Process = Generator[simpy.Event, float, None]
Arrive = Callable[[float], None]
Pick = Callable[[float], tuple[int, int]]
A_BIN = 1.0 / log(STEP)
NOBODY = (-1, -1)


@dataclass(frozen=True)
class Fates:
    """The fates of tuples, drawn beforehand.

    `boxes_run[query]` has, for each tuple, how many boxes it runs through, and one more if it
    passes the last. `seconds[query]` has the seconds that each such number takes.
    """

    boxes_run: list[bytes]
    seconds: list[list[float]]

    @property
    def box_calls(self) -> int:
        """The number of box calls in a run of all tuples."""
        most = [len(times_s) - 2 for times_s in self.seconds]
        runs = [np.frombuffer(counts, dtype=np.uint8) for counts in self.boxes_run]
        return sum(int(np.minimum(run, top).sum()) for run, top in zip(runs, most, strict=True))


@dataclass(frozen=True)
class Model:
    """Queries over one stream, by number.

    `boxes[query]` has cost, selectivity and random draw of each box. `rates` are S / C̄
    (Sharaf eq 3.1), `phi` is S / (C̄ T²) (eq 3.7), `ideals_s` are T. The lean model has `fates`.
    """

    times_s: list[float]
    boxes: list[tuple[tuple[float, float, int], ...]]
    ideals_s: list[float]
    rates: Floats
    phi: Floats
    seed: int
    fates: Fates | None


@dataclass(frozen=True)
class Done:
    """The results, each with query, tuple and instant, and the number of box calls."""

    left: list[tuple[int, int, float]]
    box_calls: int


class Books:
    """The figures of a report: response, slowdown, their norms and quantiles, queues, staleness."""

    def __init__(self, ideals_s: list[float]) -> None:
        count = len(ideals_s)
        self._ideals_s = ideals_s
        self._outputs = [0] * count
        self._sums = [[0.0] * count for _ in range(6)]
        self._bins = [[0] * BINS for _ in range(count)]
        self._slowdown_bins = [[0] * BINS for _ in range(count)]
        self._stale_s, self._stale_until_s = [0.0] * count, [-inf] * count
        self._pending = [0] * count
        self._pending_areas = [0.0] * count
        self._total = self._most = 0

    def arrive(self) -> None:
        """Count a tuple into every queue."""
        self._pending = [count + 1 for count in self._pending]
        self._total += len(self._pending)
        self._most = max(self._most, self._total)

    def finish(self, query: int, arrived_at_s: float, now_s: float) -> None:
        """Count a tuple out of a queue."""
        self._pending[query] -= 1
        self._pending_areas[query] += now_s - arrived_at_s
        self._total -= 1

    def leave(self, query: int, arrived_at_s: float, now_s: float) -> None:
        """Count a result."""
        response_s = now_s - arrived_at_s
        slowdown = response_s / self._ideals_s[query]
        responses, squares, largest, slowdowns, slow_squares, slowest = self._sums
        self._outputs[query] += 1
        responses[query] += response_s
        squares[query] += response_s * response_s
        if response_s > largest[query]:
            largest[query] = response_s
        slowdowns[query] += slowdown
        slow_squares[query] += slowdown * slowdown
        if slowdown > slowest[query]:
            slowest[query] = slowdown
        self._bins[query][_bin_of(response_s)] += 1
        self._slowdown_bins[query][_bin_of(slowdown)] += 1
        begun_s = max(arrived_at_s, self._stale_until_s[query])
        if now_s > begun_s:
            self._stale_s[query] += now_s - begun_s
            self._stale_until_s[query] = now_s


def _bin_of(value: float) -> int:
    return 0 if value <= SMALLEST else min(int(log(value / SMALLEST) * A_BIN), BINS - 1)


def model_of(network: Network, times_s: Floats, seed: int, *, lean: bool = False) -> Model:
    """Return the model of queries that are plain lines of boxes, with the kernel's random draws."""
    boxes, figures = [], []
    for path in network.paths:
        boxes.append(tuple(_box(operator) for operator in path.operators))
        figures.append(_figures(path.operators))
    selectivity, cost_s, ideal_s = np.array(figures).T
    rates = selectivity / cost_s
    phi = (selectivity / (cost_s * ideal_s)) * (1.0 / ideal_s)
    fates = _fates(boxes, len(times_s), seed) if lean else None
    return Model(times_s.tolist(), boxes, ideal_s.tolist(), rates, phi, seed, fates)


def run(model: Model, policy: str) -> Done:
    """Run the model to its end, under the policy `hr` or `bsd`."""
    assert policy in ("hr", "bsd"), policy
    arrive, pick = _by_rank(model) if policy == "hr" else _by_wait(model)
    env, fates = simpy.Environment(), model.fates
    books = Books(model.ideals_s if fates is None else [])
    timeout = env.timeout
    idle: simpy.Event | None = None
    left: list[tuple[int, int, float]] = []
    box_calls = 0

    def stream() -> Process:
        nonlocal idle
        for at_s in model.times_s:
            if at_s > env.now:
                yield timeout(at_s - env.now)
            arrive(at_s)
            if fates is None:
                books.arrive()
            if idle is not None:
                idle.succeed(at_s)
                idle = None

    def server() -> Process:
        nonlocal idle, box_calls
        boxes, seed, times_s = model.boxes, model.seed, model.times_s
        boxes_run, takes_s = (fates.boxes_run, fates.seconds) if fates is not None else ([], [])
        lasts, leave = [len(seconds) - 1 for seconds in takes_s], left.append
        # This clock is the environment's, without the rounding of an arrival's timeout.
        now_s = 0.0
        for _ in range(len(boxes) * len(times_s)):
            query, number = pick(now_s)
            if query < 0:
                idle = env.event()
                now_s = yield idle
                query, number = pick(now_s)
            if boxes_run:
                fate = boxes_run[query][number]
                spent_s = takes_s[query][fate]
                yield timeout(spent_s)
                now_s += spent_s
                if fate == lasts[query]:
                    leave((query, number, now_s))
                continue
            spent_s, passes = 0.0, True
            for cost_s, selectivity, draw in boxes[query]:
                yield timeout(cost_s)
                spent_s += cost_s
                box_calls += 1
                if selectivity < 1.0 and chance(seed, number, draw) >= selectivity:
                    passes = False
                    break
            now_s += spent_s
            books.finish(query, times_s[number], now_s)
            if passes:
                leave((query, number, now_s))
                books.leave(query, times_s[number], now_s)

    env.process(stream())
    env.process(server())
    env.run()
    return Done(left, box_calls if fates is None else fates.box_calls)


def bare_events(count: int) -> None:
    """Wait `count` times and do nothing else, to time events alone."""
    env = simpy.Environment()

    def wait() -> Process:
        timeout = env.timeout
        for _ in range(count):
            yield timeout(1.0)

    env.process(wait())
    env.run()


def _by_rank(model: Model) -> tuple[Arrive, Pick]:
    """Return a function for arrivals and one that picks the waiting query of the highest rate.

    A pick also ends the call before it, which saves a function call. It is NOBODY if no query
    waits.
    """
    order = np.argsort(-model.rates, kind="stable").tolist()
    cursors, everybody = [0] * len(order), (1 << len(order)) - 1
    waiting = arrived = ran = bit = 0

    def arrive(at_s: float) -> None:
        nonlocal waiting, arrived
        arrived += 1
        waiting = everybody

    def pick(now_s: float) -> tuple[int, int]:
        nonlocal waiting, ran, bit
        if bit and cursors[ran] == arrived:
            waiting ^= bit
        bit = waiting & -waiting
        if not bit:
            return NOBODY
        ran = order[bit.bit_length() - 1]
        number = cursors[ran]
        cursors[ran] = number + 1
        return ran, number

    return arrive, pick


def _by_wait(model: Model) -> tuple[Arrive, Pick]:
    """Return the same functions as `_by_rank`, but pick the largest Φ W."""
    times_s, phi, count = model.times_s, model.phi, len(model.phi)
    heads_s = np.full(count, inf)  # inf for an empty queue: then W is −∞
    cursors, values = [0] * count, np.empty(count)
    subtract, multiply, largest = np.subtract, np.multiply, values.argmax
    waiting = arrived = 0
    ran = -1

    def arrive(at_s: float) -> None:
        nonlocal waiting, arrived
        if waiting < count:
            heads_s[heads_s == inf] = at_s
            waiting = count
        arrived += 1

    def pick(now_s: float) -> tuple[int, int]:
        nonlocal waiting, ran
        if ran >= 0:
            number = cursors[ran]
            if number == arrived:
                heads_s[ran] = inf
                waiting -= 1
            else:
                heads_s[ran] = times_s[number]
        if not waiting:
            ran = -1
            return NOBODY
        subtract(now_s, heads_s, values)
        multiply(values, phi, values)
        ran = int(largest())
        number = cursors[ran]
        cursors[ran] = number + 1
        return ran, number

    return arrive, pick


def _fates(boxes: list[tuple[tuple[float, float, int], ...]], tuples: int, seed: int) -> Fates:
    """Draw for each tuple the first box that drops it, from 1; if none does, one past the last."""
    drawn: dict[int, Floats] = {}
    boxes_run, seconds = [], []
    for line in boxes:
        drops = np.zeros((len(line) + 1, tuples), dtype=np.bool_)
        drops[-1] = True
        for position, (_, selectivity, draw) in enumerate(line):
            if selectivity < 1.0:
                if draw not in drawn:
                    drawn[draw] = np.array([chance(seed, number, draw) for number in range(tuples)])
                drops[position] = drawn[draw] >= selectivity
        boxes_run.append(bytes((drops.argmax(axis=0) + 1).astype(np.uint8)))
        spent_s = np.cumsum([0.0, *(cost_s for cost_s, _, _ in line)]).tolist()
        seconds.append([*spent_s, spent_s[-1]])
    return Fates(boxes_run, seconds)


def _box(operator: Operator) -> tuple[float, float, int]:
    assert operator.cost_s is not None
    assert operator.selectivity is not None
    certain = operator.selectivity == 1.0
    assert certain or operator.attribute is not None, "predicates of the testbed test attributes"
    draw = 0 if operator.attribute is None else -1 - operator.attribute
    return operator.cost_s, operator.selectivity, draw


def _figures(operators: tuple[Operator, ...]) -> tuple[float, float, float]:
    """Return S, C̄ and T of a query (Sharaf §3.1)."""
    selectivity, cost_s, ideal_s = 1.0, 0.0, 0.0
    for operator in reversed(operators):
        box_s, passing, _ = _box(operator)
        cost_s = box_s + passing * cost_s
        selectivity = passing * selectivity
    for operator in operators:
        ideal_s += _box(operator)[0]
    return selectivity, cost_s, ideal_s
