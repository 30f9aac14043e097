"""Superboxes: whole applications run as one, box after box (Aurora §4.1)."""

from abc import abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from headgate.model.events import Measured, StepFinished, StepStarted
from headgate.model.network.unit_table import UnitTable
from headgate.model.network.units import Units
from headgate.model.plan import ALL, Step
from headgate.policies.interface import Policy, Selection, State
from headgate.policies.methods.outer_policy import OuterPolicy
from headgate.policies.methods.traversal import (
    BEST,
    ORDERS,
    Arrivals,
    Superbox,
    best_latency,
    superboxes_of,
)
from headgate.policies.registry import policy_named, register
from headgate.policies.round_robin import BoxRoundRobin


@dataclass(eq=False)
class Traversal:
    """One run through a superbox: its calls, and how many tuples waited when it began.

    `most_by_source` limits the tuples of the units that no other unit feeds to those that waited at
    the start. Tuples that arrive meanwhile are for the next traversal. `position` is the next call.
    """

    application: int
    calls: Sequence[int]
    most_by_source: dict[int, int]
    position: int = 0

    def steps(self, ready: Collection[int]) -> list[Step]:
        """Return the calls that are left and have tuples, each unit once.

        Only the first call of a traversal is a new decision; all others continue it.
        """
        units = dict.fromkeys(unit for unit in self.calls[self.position :] if unit in ready)
        return [
            Step(unit, self.most_by_source.get(unit, ALL), continues=self.position + offset > 0)
            for offset, unit in enumerate(units)
        ]

    def pass_by(self, unit: int) -> None:
        """Advance past the next call of a unit; the calls before it had nothing to do."""
        self.position = self.calls.index(unit, self.position) + 1


class SuperboxPolicy(OuterPolicy):
    """A policy that finishes one traversal before it chooses the next superbox.

    A traversal calls its boxes on their whole queues: that is what the orders are made for.

    A worker calls the boxes of its superbox one after the other; where several workers run, each
    has its own traversal. At query level a query is one box, and the inner policy decides. There
    the second segment of a query that is cut runs first, as in every traversal of such a superbox.
    """

    tuples_a_step, cuts = ALL, True

    def __init__(self, traversal: str, inner: str | Policy) -> None:
        if traversal not in (*ORDERS, BEST):
            raise ValueError("traversal: one of " + ", ".join((*ORDERS, BEST)))
        super().__init__(inner)
        self.traversal = traversal
        self._at_query_level = True
        self._second_segments: frozenset[int] = frozenset()
        self._superboxes: tuple[Superbox, ...] = ()
        self._applications_by_unit: list[list[int]] = []
        self._sources: frozenset[int] = frozenset()
        self._waiting: list[Traversal] = []
        self._traversal_by_call: dict[int, Traversal] = {}
        self._next: tuple[Traversal, int] | None = None
        self._begun_at_s: dict[int, float] = {}
        self._lasted_s: dict[int, float] = {}

    def prepare(self, units: Units) -> None:
        self.inner.prepare(units)
        self._at_query_level = units.level == "query"
        self._second_segments = _second_segments(units)
        self._superboxes = () if self._at_query_level else superboxes_of(units)
        self._applications_by_unit = [[] for _ in units.shapes]
        for number, superbox in enumerate(self._superboxes):
            for unit in superbox.units:
                self._applications_by_unit[unit].append(number)
        self._sources = frozenset(shape.number for shape in units.shapes if not shape.fed_by)
        self._waiting, self._traversal_by_call, self._next = [], {}, None
        self._begun_at_s, self._lasted_s = {}, {}

    def plan(self, state: State, now_s: float) -> Sequence[Step]:
        if self._at_query_level:
            return sorted(
                self.inner.plan(state, now_s),
                key=lambda step: step.unit not in self._second_segments,
            )
        ready = set(state.ready.tolist())
        if not ready:
            return []
        for traversal in self._waiting:
            if steps := traversal.steps(ready):
                self._next = traversal, steps[0].unit
                return steps
        traversal = self._begin(state, now_s)
        steps = traversal.steps(ready)
        self._next = traversal, steps[0].unit
        return steps

    def hear(self, event: StepStarted | StepFinished | Measured) -> None:
        self.inner.hear(event)
        if isinstance(event, StepStarted):
            self._start(event)
        elif isinstance(event, StepFinished):
            traversal = self._traversal_by_call.pop(event.call.number, None)
            if traversal is not None:
                self._waiting.append(traversal)
                self._lasted_s[traversal.application] += event.seconds

    def selection(self, units: Units, table: UnitTable, *, learns: bool) -> Selection | None:
        if units.level == "query" and not _second_segments(units):
            return self.inner.selection(units, table, learns=learns)
        return None

    @abstractmethod
    def choose(
        self, state: State, now_s: float, free: Sequence[int]
    ) -> tuple[int, Collection[int]]:
        """Return the next application, one of `free`, and the units its traversal starts from."""

    def begun(self, application: int) -> None:  # only policies with turns need it
        """Take note that the traversal of an application has begun."""

    def members(self, state: State, application: int) -> list[int]:
        """Return the ready units of an application, in ascending order."""
        downstream = self._superboxes[application].downstream
        return [unit for unit in state.ready.tolist() if unit in downstream]

    def _begin(self, state: State, now_s: float) -> Traversal:
        """Prepare the next traversal. Nothing is recorded until its first call has started."""
        applications = self._applications_by_unit
        waiting = sorted({number for unit in state.ready for number in applications[unit]})
        busy = {traversal.application for traversal in self._traversal_by_call.values()}
        free = [number for number in waiting if number not in busy] or waiting
        application, units = self.choose(state, now_s, free)
        superbox, pending = self._superboxes[application], state.table["pending"]
        calls: Sequence[int]
        if self.traversal == BEST:
            arrivals = self._arrivals(application, units, state.table, now_s)
            calls = best_latency(superbox, state.table, units, arrivals)
        else:
            calls = ORDERS[self.traversal](superbox, state.table, units)
        most = {unit: int(pending[unit]) for unit in units if unit in self._sources}
        return Traversal(application, calls, most)

    def _arrivals(
        self, application: int, units: Collection[int], table: UnitTable, now_s: float
    ) -> Arrivals:
        """Return what to expect during a traversal: as much per second as since the last one.

        A traversal takes all tuples of its sources that wait when it begins. So those that wait at
        the next one have come in between.
        """
        before_s = self._begun_at_s.get(application, now_s)
        if before_s >= now_s:
            return Arrivals({})
        sources = [unit for unit in units if unit in self._sources]
        per_s = {unit: float(table["pending"][unit]) / (now_s - before_s) for unit in sources}
        others_s = sum(
            seconds
            for other, seconds in self._lasted_s.items()
            if other != application and self._begun_at_s[other] >= before_s
        )
        return Arrivals(per_s, others_s)

    def _start(self, event: StepStarted) -> None:
        if self._next is None or self._next[1] != event.call.units[0]:
            return  # not a step of this plan, but a probe, for example
        chosen, unit = self._next
        if chosen in self._waiting:
            self._waiting.remove(chosen)
        else:
            # A new traversal began, so those that wait for their turn have nothing left to do.
            self._waiting = []
            self._begun_at_s[chosen.application] = event.at_s
            self._lasted_s[chosen.application] = 0.0
            self.begun(chosen.application)
        chosen.pass_by(unit)
        self._traversal_by_call[event.call.number] = chosen
        self._next = None


def _second_segments(units: Units) -> frozenset[int]:
    """Return the units that run the second segment of a query that is cut."""
    nodes = units.graph.nodes
    return frozenset(shape.number for shape in units.shapes if nodes[shape.box].queue >= 0)


@register(
    "aaat",
    objective="throughput: few decisions and few box calls",
    paper="Aurora §4.1.1",
    starves=False,
    use="Applications have many boxes, and a decision or a box call is expensive.",
    avoid="Some applications matter more than others: all get the same turns.",
)
class ApplicationAtATime(SuperboxPolicy):
    """One superbox per application; those that have tuples run in turn (Aurora §4.1.1).

    Args:
        traversal: the order of the boxes: `mc`, `ml`, `mm`, or `best`, which is `mc` or `ml`,
            whichever the cost model expects to have the lower latency for the tuples that wait and
            those that arrive meanwhile (Aurora §5.3).
    """

    def __init__(self, traversal: str = "mc") -> None:
        super().__init__(traversal, BoxRoundRobin())
        self.fuses_at_any_cost = traversal == "mc"
        self._served_last = -1

    def prepare(self, units: Units) -> None:
        super().prepare(units)
        self._served_last = -1

    def choose(
        self, state: State, now_s: float, free: Sequence[int]
    ) -> tuple[int, Collection[int]]:
        later = [number for number in free if number > self._served_last]
        application = (later or free)[0]
        return application, self.members(state, application)

    def begun(self, application: int) -> None:
        self._served_last = application


@register(
    "mc",
    objective="throughput: fewest box calls per output",
    paper="Aurora §4.1.2",
    starves=False,
    use="A box call costs as much as several tuples.",
    avoid="The first results must come early: all leave at the end of the traversal.",
)
def min_cost() -> Policy:
    """Applications in turn, their boxes in post order, each called once (Aurora §4.1.2)."""
    return ApplicationAtATime("mc")


@register(
    "ml",
    objective="mean latency",
    paper="Aurora §4.1.2",
    starves=False,
    use="Results should leave as soon as possible, and box calls cost little.",
    avoid="A box call costs as much as several tuples: boxes are called again and again.",
)
def min_latency() -> Policy:
    """Applications in turn, boxes by output cost, each with those downstream (Aurora §4.1.2)."""
    return ApplicationAtATime("ml")


@register(
    "mm",
    objective="memory",
    paper="Aurora §4.1.2",
    starves=False,
    use="Queues are long and memory is short.",
    avoid="Results must come early: boxes that drop few tuples run last, and so do the outputs.",
)
def min_memory() -> Policy:
    """Applications in turn, their boxes by memory freed per second (Aurora §4.1.2)."""
    return ApplicationAtATime("mm")


@register(
    "top-k",
    objective="that of the inner policy, with fewer decisions",
    paper="Aurora §4.1.1",
    use="Priorities matter, and deciding after every box call costs too much.",
    avoid="Applications of low priority must be served too: they may never get a turn.",
)
class TopKSpanner(SuperboxPolicy):
    """The tree that spans the k boxes of highest priority of one application (Aurora §4.1.1).

    The application is that of the box of highest priority. The tree holds its k best boxes and all
    boxes downstream of them. At query level, where a query is one box, the inner policy decides.

    Args:
        k: how many boxes to span.
        traversal: the order of the boxes, as in `aaat`.
        inner: the policy that ranks boxes, by name or as an object; by default the p-tuple of `qos`
            if a query has a QoS graph, else `hr`.
    """

    def __init__(
        self, k: int = 3, traversal: str = "mc", inner: str | Policy | None = None
    ) -> None:
        if not (isinstance(k, int) and k >= 1):
            raise ValueError("k of 1 box or more")
        super().__init__(traversal, inner or "hr")
        self.k, self._ranks_by_default = k, inner is None

    def prepare(self, units: Units) -> None:
        if self._ranks_by_default:
            has_graphs = any(path.query.qos for path in units.network.paths)
            self.inner = policy_named("qos" if has_graphs else "hr")
        super().prepare(units)

    def choose(
        self, state: State, now_s: float, free: Sequence[int]
    ) -> tuple[int, Collection[int]]:
        ranked = [step.unit for step in self.inner.plan(state, now_s)]
        applications = (number for unit in ranked for number in self._applications_by_unit[unit])
        application = next((number for number in applications if number in free), free[0])
        downstream = self._superboxes[application].downstream
        members = self.members(state, application)
        best = [unit for unit in ranked if unit in downstream][: self.k] or members
        tree = {box for unit in best for box in downstream[unit]}
        return application, [unit for unit in members if unit in tree]
