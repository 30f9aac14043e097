"""Policies that know the cost of every single tuple, as only a simulation can (BZ §5, §6)."""

from abc import abstractmethod
from collections.abc import Sequence
from math import ceil, inf

import numpy as np

from headgate.errors import ConfigRefused
from headgate.model.arrays import Floats
from headgate.model.events import Measured, StepFinished, StepStarted
from headgate.model.network.units import Units
from headgate.model.plan import ALL, Step
from headgate.policies.interface import Foresight, Policy, State
from headgate.policies.registry import register
from headgate.policies.structures.envelope import slope_of, steepest_line


class Foreseeing(Policy):
    """A policy that ranks units by what is known about each of their pending tuples."""

    foresees = True

    def __init__(self) -> None:
        self._feeds: list[tuple[int, ...]] = []

    def prepare(self, units: Units) -> None:
        self._feeds = [shape.feeds for shape in units.shapes]

    def plan(self, state: State, now_s: float) -> Sequence[Step]:
        foresight = self._foresight(state)
        ready = state.ready.tolist()
        ranked = [(unit, *self.best(state, unit, *foresight.waiting(unit))) for unit in ready]
        ranked.sort(key=lambda entry: -entry[2])
        return [Step(unit, tuples) for unit, tuples, _ in ranked]

    @abstractmethod
    def best(self, state: State, unit: int, seconds: Floats, outputs: Floats) -> tuple[int, float]:
        """Return how many tuples of a queue to take, and the priority of doing so."""

    def memory_drops(self, state: State, unit: int, outputs: Floats) -> Floats:
        """Return the bytes that each tuple of a queue frees; results that leave count 0 (BZ §3)."""
        bytes_in = state.table["bytes_in"]
        bytes_out = sum(float(bytes_in[fed]) for fed in self._feeds[unit])
        return np.asarray(bytes_in[unit] - outputs * bytes_out, dtype=np.float64)

    def _foresight(self, state: State) -> Foresight:
        if state.foresight is None:
            raise ConfigRefused(
                path=f"policy '{self.name}'",
                key="engine",
                value=None,
                expected="one that foresees what each pending tuple costs, as the simulation can",
            )
        return state.foresight


@register(
    "mss",
    objective="mean response time, the lowest possible",
    paper="BZ §5",
    levels=("query",),
    engines=("simulation",),
    use="You want to know how far a practical policy is from the optimum.",
    avoid="Tuples still arrive: it is optimal only for queues that are complete.",
)
class MaximumSlopeSegments(Foreseeing):
    """Segments of single tuples by output rate, the steepest line of each queue (BZ §5).

    A step takes a whole segment. If the step is cut short, the next one takes the rest, because the
    end of a segment is at least as steep as the whole.
    """

    def best(self, state: State, unit: int, seconds: Floats, outputs: Floats) -> tuple[int, float]:
        return steepest_line(seconds, outputs) if len(seconds) else (1, -inf)


@register(
    "mss-memory",
    objective="memory, with tuple costs known in advance",
    paper="BZ §6",
    engines=("simulation",),
    use="You want to know how far chain is from what foresight would allow.",
    avoid="An optimum is needed: over several operators it is a heuristic.",
)
class MemorySegments(Foreseeing):
    """Segments of single tuples by the memory that they free per second (BZ §6).

    It decides again whenever a tuple has gone on to the next operator, so a step of a unit that
    feeds others takes one tuple.
    """

    def best(self, state: State, unit: int, seconds: Floats, outputs: Floats) -> tuple[int, float]:
        if not len(seconds):
            return 1, -inf
        tuples, slope = steepest_line(seconds, self.memory_drops(state, unit, outputs))
        return (1 if self._feeds[unit] else tuples), slope


@register(
    "greedy",
    objective="mean response time, with tuple costs known in advance",
    paper="BZ §5",
    engines=("simulation",),
    use="You want a baseline that sees the head of each queue and nothing behind it.",
    avoid="A few tuples cost much more than others: they hold up all that wait behind them.",
)
class GreedyTuple(Foreseeing):
    """Inverse of the cost of the oldest tuple of a queue (BZ §5)."""

    def best(self, state: State, unit: int, seconds: Floats, outputs: Floats) -> tuple[int, float]:
        return 1, (slope_of(float(seconds[0]), 1.0) if len(seconds) else -inf)


@register(
    "greedy-memory",
    objective="memory, with tuple costs known in advance",
    paper="BZ §6",
    engines=("simulation",),
    use="You want the baseline of mss-memory that sees only the head of each queue.",
    avoid="A few tuples cost much more than others: they hold up all that wait behind them.",
)
class GreedyMemory(Foreseeing):
    """Memory per second that the oldest tuple of a queue frees (BZ §6)."""

    def best(self, state: State, unit: int, seconds: Floats, outputs: Floats) -> tuple[int, float]:
        if not len(seconds):
            return 1, -inf
        drop = self.memory_drops(state, unit, outputs[:1])[0]
        return 1, slope_of(float(seconds[0]), float(drop))


@register(
    "rr-k",
    objective="fairness by turns",
    paper="BZ §6",
    starves=False,
    use="You want the baseline of BZ: operators in turn, a fixed number of tuples each.",
    avoid="Response time or memory matters: taking turns makes both worse.",
)
class RoundRobinVisits(Policy):
    """Units in turn, k tuples per visit: 30, 60 and 90 of 300 in BZ §6.

    A visit may take several steps; it ends early when the queue is empty.

    Args:
        k: tuples per visit if 1 or more; below 1, the fraction of the queue when the visit begins.
    """

    tuples_a_step = ALL

    def __init__(self, k: float = 30) -> None:
        if not (0 < k < 1 or (k >= 1 and k == int(k))):
            raise ValueError("k of 1 or more whole tuples, or a fraction of the queue below 1")
        self.k, self.train = k, (f"{k:g}" if k >= 1 else f"{k:.0%} of the queue")
        self._current_unit, self._left = -1, 0
        self._offered: dict[int, int] = {}

    def prepare(self, units: Units) -> None:
        self._current_unit, self._left, self._offered = -1, 0, {}

    def plan(self, state: State, now_s: float) -> Sequence[Step]:
        ready = state.ready
        stays = self._left > 0 and self._current_unit in ready
        cut = int(np.searchsorted(ready, self._current_unit, side="left" if stays else "right"))
        order = [int(unit) for unit in (*ready[cut:], *ready[:cut])]
        self._offered = {unit: self._visit(int(state.table["pending"][unit])) for unit in order}
        if stays:
            self._offered[self._current_unit] = self._left
        return [Step(unit, self._offered[unit]) for unit in order]

    def hear(self, event: StepStarted | StepFinished | Measured) -> None:
        if isinstance(event, StepStarted):
            self._current_unit = event.call.units[0]
            self._left = self._offered.get(self._current_unit, 0) - event.call.tuples

    def _visit(self, pending: int) -> int:
        return int(self.k) if self.k >= 1 else max(1, ceil(self.k * pending))
