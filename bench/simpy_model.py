"""Sharaf's testbed at query level in SimPy, written for speed: what the kernel is compared with.

It is the kernel's model, with the kernel's data structures: a cursor a query into the one stream,
static priorities as ranks with a bit for each query that waits, Φ W over arrays for `bsd`. Every
box call is an event; luck is drawn when a box runs, by the same hash; what a report needs is
counted when a tuple leaves. The bits are one integer, so that an arrival, which makes every query
ready, costs one assignment.
"""

from collections.abc import Generator
from dataclasses import dataclass
from math import inf, log

import numpy as np
import simpy

from headgate.metrics.tally import BINS, SMALLEST, STEP
from headgate.model.events import Floats, Ints
from headgate.model.network import Network
from headgate.model.operator import Operator
from headgate.workloads.luck import chance

Process = Generator[simpy.Event, float, None]
A_BIN = 1.0 / log(STEP)


@dataclass(frozen=True)
class Model:
    """Queries over one stream, by number.

    `boxes[query]` has cost, selectivity and luck of each box. `rates` are S / C̄ (Sharaf eq 3.1),
    `phi` is S / (C̄ T²) (eq 3.7), `ideals_s` are T.
    """

    times_s: list[float]
    boxes: list[tuple[tuple[float, float, int], ...]]
    ideals_s: list[float]
    rates: Floats
    phi: Floats
    seed: int


class Books:
    """What a report needs: response, slowdown, their norms and quantiles, queues, staleness."""

    def __init__(self, model: Model) -> None:
        count = len(model.boxes)
        self.left: list[tuple[int, int, float]] = []
        self.box_calls = 0
        self._ideals_s = model.ideals_s
        self._outputs = [0] * count
        self._sums = [[0.0] * count for _ in range(6)]
        self._bins = [[0] * BINS for _ in range(count)]
        self._slowdown_bins = [[0] * BINS for _ in range(count)]
        self._stale_s, self._stale_until_s = [0.0] * count, [-inf] * count
        self._pending = [0] * count
        self._pending_areas = [0.0] * count
        self._total = self._most = 0

    def arrive(self) -> None:
        """Counts a tuple into every queue."""
        self._pending = [count + 1 for count in self._pending]
        self._total += len(self._pending)
        self._most = max(self._most, self._total)

    def finish(self, query: int, arrived_at_s: float, now_s: float) -> None:
        """Counts a tuple out of a queue."""
        self._pending[query] -= 1
        self._pending_areas[query] += now_s - arrived_at_s
        self._total -= 1

    def leave(self, query: int, number: int, arrived_at_s: float, now_s: float) -> None:
        """Counts a result."""
        self.left.append((query, number, now_s))
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


def model_of(network: Network, times_s: Floats, seed: int) -> Model:
    """Gives the model of queries that are plain lines of boxes, with the kernel's luck."""
    boxes, figures = [], []
    for path in network.paths:
        boxes.append(tuple(_box(each) for each in path.operators))
        figures.append(_figures(path.operators))
    selectivity, cost_s, ideal_s = np.array(figures).T
    rates = selectivity / cost_s
    phi = (selectivity / (cost_s * ideal_s)) * (1.0 / ideal_s)
    return Model(times_s.tolist(), boxes, ideal_s.tolist(), rates, phi, seed)


def run(model: Model, policy: str) -> Books:
    """Gives the books of a whole run. The policy is `hr` or `bsd`."""
    if policy == "hr":
        return _run_by_rank(model, np.argsort(-model.rates, kind="stable"))
    assert policy == "bsd", policy
    return _run_by_wait(model, model.phi)


def _run_by_rank(model: Model, by_rank: Ints) -> Books:
    env, books = simpy.Environment(), Books(model)
    timeout = env.timeout
    everybody = (1 << len(by_rank)) - 1
    waiting = arrived = 0
    idle: simpy.Event | None = None

    def stream() -> Process:
        nonlocal waiting, arrived, idle
        for at_s in model.times_s:
            if at_s > env.now:
                yield timeout(at_s - env.now)
            arrived += 1
            waiting = everybody
            books.arrive()
            if idle is not None:
                idle.succeed(at_s)
                idle = None

    def server() -> Process:
        nonlocal waiting, idle
        order, boxes, seed, times_s = by_rank.tolist(), model.boxes, model.seed, model.times_s
        cursors = [0] * len(order)
        # The clock of its own is the environment's without the rounding of an arrival's timeout.
        now_s = 0.0
        for _ in range(len(order) * len(times_s)):
            if not waiting:
                idle = env.event()
                now_s = yield idle
            bit = waiting & -waiting
            query = order[bit.bit_length() - 1]
            number = cursors[query]
            spent_s, passes = 0.0, True
            for cost_s, selectivity, luck in boxes[query]:
                yield timeout(cost_s)
                spent_s += cost_s
                books.box_calls += 1
                if selectivity < 1.0 and chance(seed, number, luck) >= selectivity:
                    passes = False
                    break
            now_s += spent_s
            books.finish(query, times_s[number], now_s)
            if passes:
                books.leave(query, number, times_s[number], now_s)
            cursors[query] = number + 1
            if number + 1 == arrived:
                waiting ^= bit

    env.process(stream())
    env.process(server())
    env.run()
    return books


def _run_by_wait(model: Model, phi: Floats) -> Books:
    env, books = simpy.Environment(), Books(model)
    timeout = env.timeout
    count = len(phi)
    heads_s = np.full(count, inf)  # of who has nothing: then W is −∞
    waiting = arrived = 0
    idle: simpy.Event | None = None

    def stream() -> Process:
        nonlocal waiting, arrived, idle
        for at_s in model.times_s:
            if at_s > env.now:
                yield timeout(at_s - env.now)
            if waiting < count:
                heads_s[heads_s == inf] = at_s
                waiting = count
            arrived += 1
            books.arrive()
            if idle is not None:
                idle.succeed(at_s)
                idle = None

    def server() -> Process:
        nonlocal waiting, idle
        times_s, boxes, seed = model.times_s, model.boxes, model.seed
        cursors, values = [0] * count, np.empty(count)
        subtract, multiply, largest = np.subtract, np.multiply, values.argmax
        now_s = 0.0
        for _ in range(count * len(times_s)):
            if not waiting:
                idle = env.event()
                now_s = yield idle
            subtract(now_s, heads_s, values)
            multiply(values, phi, values)
            query = int(largest())
            number = cursors[query]
            spent_s, passes = 0.0, True
            for cost_s, selectivity, luck in boxes[query]:
                yield timeout(cost_s)
                spent_s += cost_s
                books.box_calls += 1
                if selectivity < 1.0 and chance(seed, number, luck) >= selectivity:
                    passes = False
                    break
            now_s += spent_s
            books.finish(query, times_s[number], now_s)
            if passes:
                books.leave(query, number, times_s[number], now_s)
            number += 1
            cursors[query] = number
            if number == arrived:
                heads_s[query] = inf
                waiting -= 1
            else:
                heads_s[query] = times_s[number]

    env.process(stream())
    env.process(server())
    env.run()
    return books


def _box(operator: Operator) -> tuple[float, float, int]:
    assert operator.cost_s is not None
    assert operator.selectivity is not None
    certain = operator.selectivity == 1.0
    assert certain or operator.attribute is not None, "predicates of the testbed test attributes"
    luck = 0 if operator.attribute is None else -1 - operator.attribute
    return operator.cost_s, operator.selectivity, luck


def _figures(operators: tuple[Operator, ...]) -> tuple[float, float, float]:
    """Gives S, C̄ and T of a query (Sharaf §3.1)."""
    selectivity, cost_s, ideal_s = 1.0, 0.0, 0.0
    for operator in reversed(operators):
        own_s, passing, _ = _box(operator)
        cost_s = own_s + passing * cost_s
        selectivity = passing * selectivity
    for operator in operators:
        ideal_s += _box(operator)[0]
    return selectivity, cost_s, ideal_s
