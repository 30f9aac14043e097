"""Sharaf's testbed at query level in SimPy, written for speed: what the kernel is compared with.

It has the kernel's data structures: a cursor a query into the one stream, static priorities as
ranks with a bit for each query that waits, and Φ W over arrays for `bsd`. The bits are one integer,
so that an arrival, which makes every query ready, costs one assignment; a call is one timeout.
Nothing is counted while it runs but what left and when. What becomes of a tuple is looked up: its
luck was drawn beforehand, and drawing it is not timed.
"""

from collections.abc import Generator
from dataclasses import dataclass
from math import inf

import numpy as np
import simpy

from headgate.model.events import Floats, Ints
from headgate.model.network import Network
from headgate.model.operator import Operator
from headgate.workloads.luck import chance

Process = Generator[simpy.Event, float, None]


@dataclass(frozen=True)
class Model:
    """Queries over one stream, by number.

    `fates[query]` has for each tuple how many boxes it runs through, and one more where it comes
    out of the last; `seconds[query]` what that takes. `rates` are S / C̄ (Sharaf eq 3.1), `phi` is
    S / (C̄ T²) (eq 3.7).
    """

    times_s: list[float]
    fates: list[bytes]
    seconds: list[list[float]]
    rates: Floats
    phi: Floats

    @property
    def box_calls(self) -> int:
        """How many boxes all tuples of a run go through."""
        most = [len(each) - 2 for each in self.seconds]
        runs = [np.frombuffer(each, dtype=np.uint8) for each in self.fates]
        return sum(int(np.minimum(own, top).sum()) for own, top in zip(runs, most, strict=True))


def model_of(network: Network, times_s: Floats, seed: int) -> Model:
    """Gives the model of queries that are plain lines of boxes, with the kernel's luck."""
    drawn: dict[int, Floats] = {}
    fates, seconds, figures = [], [], []
    for path in network.paths:
        fates.append(_fates(path.operators, len(times_s), seed, drawn))
        spent_s = np.cumsum([0.0, *(_cost_s(each) for each in path.operators)])
        seconds.append([*spent_s.tolist(), float(spent_s[-1])])
        figures.append(_figures(path.operators))
    selectivity, cost_s, ideal_s = np.array(figures).T
    rates = selectivity / cost_s
    phi = (selectivity / (cost_s * ideal_s)) * (1.0 / ideal_s)
    return Model(times_s.tolist(), fates, seconds, rates, phi)


def run(model: Model, policy: str) -> list[tuple[int, int, float]]:
    """Gives what left: its query, its tuple and when. The policy is `hr` or `bsd`."""
    if policy == "hr":
        return _run_by_rank(model, np.argsort(-model.rates, kind="stable"))
    assert policy == "bsd", policy
    return _run_by_wait(model, model.phi)


def _run_by_rank(model: Model, by_rank: Ints) -> list[tuple[int, int, float]]:
    env = simpy.Environment()
    timeout = env.timeout
    everybody = (1 << len(by_rank)) - 1
    waiting = arrived = 0
    idle: simpy.Event | None = None
    left: list[tuple[int, int, float]] = []

    def stream() -> Process:
        nonlocal waiting, arrived, idle
        for at_s in model.times_s:
            if at_s > env.now:
                yield timeout(at_s - env.now)
            arrived += 1
            waiting = everybody
            if idle is not None:
                idle.succeed(at_s)
                idle = None

    def server() -> Process:
        nonlocal waiting, idle
        order, fates, seconds = by_rank.tolist(), model.fates, model.seconds
        cursors, lasts = [0] * len(order), [len(each) - 1 for each in seconds]
        leave = left.append
        # The clock of its own is the environment's without the rounding of an arrival's timeout.
        now_s = 0.0
        for _ in range(len(order) * len(model.times_s)):
            if not waiting:
                idle = env.event()
                now_s = yield idle
            bit = waiting & -waiting
            query = order[bit.bit_length() - 1]
            number = cursors[query]
            fate = fates[query][number]
            takes_s = seconds[query][fate]
            yield timeout(takes_s)
            now_s += takes_s
            number += 1
            cursors[query] = number
            if number == arrived:
                waiting ^= bit
            if fate == lasts[query]:
                leave((query, number - 1, now_s))

    env.process(stream())
    env.process(server())
    env.run()
    return left


def _run_by_wait(model: Model, phi: Floats) -> list[tuple[int, int, float]]:
    env = simpy.Environment()
    timeout = env.timeout
    count = len(phi)
    heads_s = np.full(count, inf)  # of who has nothing: then W is −∞
    waiting = arrived = 0
    idle: simpy.Event | None = None
    left: list[tuple[int, int, float]] = []

    def stream() -> Process:
        nonlocal waiting, arrived, idle
        for at_s in model.times_s:
            if at_s > env.now:
                yield timeout(at_s - env.now)
            if waiting < count:
                heads_s[heads_s == inf] = at_s
                waiting = count
            arrived += 1
            if idle is not None:
                idle.succeed(at_s)
                idle = None

    def server() -> Process:
        nonlocal waiting, idle
        times_s, fates, seconds = model.times_s, model.fates, model.seconds
        cursors, lasts = [0] * count, [len(each) - 1 for each in seconds]
        values = np.empty(count)
        subtract, multiply, largest = np.subtract, np.multiply, values.argmax
        leave = left.append
        now_s = 0.0
        for _ in range(count * len(times_s)):
            if not waiting:
                idle = env.event()
                now_s = yield idle
            subtract(now_s, heads_s, values)
            multiply(values, phi, values)
            query = int(largest())
            number = cursors[query]
            fate = fates[query][number]
            takes_s = seconds[query][fate]
            yield timeout(takes_s)
            now_s += takes_s
            number += 1
            cursors[query] = number
            if number == arrived:
                heads_s[query] = inf
                waiting -= 1
            else:
                heads_s[query] = times_s[number]
            if fate == lasts[query]:
                leave((query, number - 1, now_s))

    env.process(stream())
    env.process(server())
    env.run()
    return left


def _fates(
    operators: tuple[Operator, ...], tuples: int, seed: int, drawn: dict[int, Floats]
) -> bytes:
    """Gives for each tuple the first box, from 1, that drops it; where none does, one behind."""
    drops = np.zeros((len(operators) + 1, tuples), dtype=np.bool_)
    drops[-1] = True
    for position, operator in enumerate(operators):
        selectivity = operator.selectivity
        assert selectivity is not None
        if selectivity < 1.0:
            assert operator.attribute is not None, "predicates of the testbed test attributes"
            luck = -1 - operator.attribute
            if luck not in drawn:
                drawn[luck] = np.array([chance(seed, number, luck) for number in range(tuples)])
            drops[position] = drawn[luck] >= selectivity
    return bytes((drops.argmax(axis=0) + 1).astype(np.uint8))


def _figures(operators: tuple[Operator, ...]) -> tuple[float, float, float]:
    """Gives S, C̄ and T of a query (Sharaf §3.1)."""
    selectivity, cost_s, ideal_s = 1.0, 0.0, 0.0
    for operator in reversed(operators):
        assert operator.selectivity is not None
        cost_s = _cost_s(operator) + operator.selectivity * cost_s
        selectivity = operator.selectivity * selectivity
    for operator in operators:
        ideal_s += _cost_s(operator)
    return selectivity, cost_s, ideal_s


def _cost_s(operator: Operator) -> float:
    assert operator.cost_s is not None
    return operator.cost_s
