"""Query classes: a weighted round robin over classes, any policy inside a class (CQC §4)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from headgate.model.arrays import Floats, Ints
from headgate.model.events import Measured, StepFinished, StepStarted
from headgate.model.network.unit_table import UnitTable
from headgate.model.network.units import Units
from headgate.model.plan import ALL, Step
from headgate.policies.interface import Policy, Ranking, State
from headgate.policies.methods.outer_policy import OuterPolicy
from headgate.policies.registry import register
from headgate.policies.sources_last import operators_first, source_operators

POLLS = 2
"""How often a class without tuples polls its sources before it yields (CQC §4.2)."""


@dataclass
class ClassTurn:
    """The time account of one class: T is `slice_s`, c is `quota_s`, tu is `used_s`.

    `unspent_s` is what the last turn left over. Only calls that began in that turn may use it.
    """

    number: int
    priority: float
    slice_s: float = 0.0
    quota_s: float = 0.0
    used_s: float = 0.0
    unspent_s: float = 0.0

    def settle(self) -> None:
        """Close a turn: deduct an overrun from the next quota, and drop unused time.

        Departs from the printed step 3b, which measures the overrun from T instead of the quota
        that was granted, and so would forgive a debt that is still being paid.
        """
        self.unspent_s = max(0.0, self.quota_s - self.used_s)
        self.quota_s = self.slice_s - max(0.0, self.used_s - self.quota_s)
        self.used_s = 0.0

    def charge_late(self, seconds: float) -> None:
        """Charge a call that ended after its turn, as happens when several workers run."""
        self.quota_s -= max(0.0, seconds - self.unspent_s)
        self.unspent_s = max(0.0, self.unspent_s - seconds)


@register(
    "cqc",
    objective="response time of important classes",
    paper="CQC §4",
    starves=False,
    use="Queries differ in importance, and the less important ones must still make progress.",
    avoid="All queries are of one class: then it is the same as the inner policy.",
)
class Cqc(OuterPolicy):
    """Classes in descending priority, each for its quota of worker-seconds per round (CQC §4.2).

    A class gets T = k P / ΣP of the period k. A class whose quota is not positive skips its turn
    and gains T. Inside the class the inner policy decides; no call spans two classes. An operator
    drains its whole queue.

    At operator level the operators that only streams feed are the sources of their class: they run
    when no other operator of the class has tuples (CQC §3). In the paper, a class that waits for
    tuples polls its sources twice and then yields the rest of its turn. Here a second poll would
    find what the first has found, so a class without tuples yields at once. A simulation charges
    `poll_s` for both polls. On Spark a thread polls the sources; the CPU time of its polls is
    charged to the highest class that reads the source, to which the source belongs (CQC §3).

    Quotas are charged in CPU time where the engine measures it: that of the call's threads and
    tasks. A call that waits for a core, a disk or another call uses nothing up (CQC §4.2).

    Args:
        inner: the policy inside a class, by name or as an object.
        period_s: k; 1000 µs in the paper.
        period_steps: the period is at least this many mean steps. The paper's steps are short
            compared with its period. A Spark job is not, and a quota below one step has no effect.

    Departs from the paper at query level: there a unit is source and operators in one, and no class
    has separate sources.
    """

    tuples_a_step = ALL

    def __init__(
        self, inner: str | Policy = "hr", period_s: float = 0.001, period_steps: int = 0
    ) -> None:
        if not period_s > 0:
            raise ValueError("period_s above 0 seconds")
        super().__init__(inner)
        self.period_s, self.period_steps = period_s, period_steps
        self.turns: list[ClassTurn] = []
        self._position = 0
        self._class_of_unit: list[int] = []
        self._is_source = np.zeros(0, dtype=np.bool_)
        self._steps, self._steps_s = 0, 0.0
        self._polls = 0
        self._class_of_stream: dict[int, int] = {}

    def prepare(self, units: Units) -> None:
        self.inner.prepare(units)
        self.turns = [
            ClassTurn(number, query_class.priority)
            for number, query_class in enumerate(units.network.classes)
        ]
        self.turns.sort(key=lambda turn: -turn.priority)
        self._position = 0
        self._class_of_unit = [shape.query_class for shape in units.shapes]
        self._is_source = source_operators(units)
        self._class_of_stream = classes_of_streams(units)
        self._share_out(self.period_s)
        for turn in self.turns:
            turn.quota_s = turn.slice_s

    def plan(self, state: State, now_s: float) -> Sequence[Step]:
        classes = state.table["query_class"][state.ready]
        waiting = set(classes.tolist())
        if not waiting:
            return []
        while True:
            turn = self.turns[self._position]
            if turn.used_s == 0 and turn.quota_s <= 0:
                turn.quota_s += turn.slice_s
            elif turn.number in waiting and turn.used_s < turn.quota_s:
                inside = operators_first(state.ready[classes == turn.number], self._is_source)
                return self.inner.plan(replace(state, ready=inside), now_s)
            else:
                if turn.number not in waiting:
                    self._polls += POLLS
                turn.settle()
            self._position = (self._position + 1) % len(self.turns)
            if self._position == 0:
                self._pass_rounds_in_debt(waiting)

    def hear(self, event: StepStarted | StepFinished | Measured) -> None:
        self.inner.hear(event)
        if not isinstance(event, StepFinished):
            return
        seconds = event.seconds if event.cpu_s is None else event.cpu_s
        self._charge(self._class_of_unit[event.call.units[0]], seconds)
        self._steps += 1
        self._steps_s += seconds
        self._share_out(max(self.period_s, self.period_steps * self._steps_s / self._steps))

    def charge_polls(self, stream: int, seconds: float) -> None:
        if stream in self._class_of_stream:
            self._charge(self._class_of_stream[stream], seconds)
        super().charge_polls(stream, seconds)

    def take_polls(self) -> int:
        polls, self._polls = self._polls, 0
        return polls

    def ranking(self, now_s: float) -> Ranking | None:
        return self.inner.ranking(now_s)

    def quotas(self) -> Mapping[int, tuple[float, float]]:
        return {turn.number: (turn.quota_s, turn.used_s) for turn in self.turns}

    def may_fuse(self, table: UnitTable, unit: int, other: int) -> bool:
        same_class = self._class_of_unit[unit] == self._class_of_unit[other]
        return same_class and self.inner.may_fuse(table, unit, other)

    def value(self, selectivity: float, cost_s: float, ideal_s: float) -> float:
        return self.inner.value(selectivity, cost_s, ideal_s)

    def rates(self, table: UnitTable, units: Ints, now_s: float) -> Floats | None:
        return self.inner.rates(table, units, now_s)

    def _charge(self, number: int, seconds: float) -> None:
        """Charge a class, in its turn or after it."""
        turn = next(turn for turn in self.turns if turn.number == number)
        if self.turns[self._position] is turn:
            turn.used_s += seconds
        else:
            turn.charge_late(seconds)

    def _share_out(self, period_s: float) -> None:
        total = sum(turn.priority for turn in self.turns)
        for turn in self.turns:
            turn.slice_s = turn.priority * period_s / total

    def _pass_rounds_in_debt(self, waiting: set[int]) -> None:
        """Skip, all at once, the rounds in which every waiting class would only pay its debt.

        A class whose step overran by a second has to skip ten thousand rounds of 0.1 ms.
        """
        debts = [turn for turn in self.turns if turn.number in waiting]
        if any(turn.quota_s > 0 for turn in debts):
            return
        rounds = min(int(-turn.quota_s / turn.slice_s) for turn in debts)
        for turn in self.turns:
            if turn.quota_s <= 0:
                paid_s = turn.quota_s + rounds * turn.slice_s
                turn.quota_s = paid_s if turn.number in waiting else min(paid_s, turn.slice_s)


def classes_of_streams(units: Units) -> dict[int, int]:
    """Return, by stream, the highest class that reads it, by itself or in a timeline."""
    network, classes = units.network, dict[int, int]()
    numbers = {stream.name: number for number, stream in enumerate(network.streams)}
    for shape in units.shapes:
        for timeline in shape.streams:
            names = network.streams[timeline].of or (network.streams[timeline].name,)
            for stream in (numbers[name] for name in names if name in numbers):
                readers = (classes.get(stream, shape.query_class), shape.query_class)
                classes[stream] = max(readers, key=lambda one: network.classes[one].priority)
    return classes
