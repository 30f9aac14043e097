"""The scheduler: holds the unit table, cursors and running calls, and asks the policy."""

from collections.abc import Sequence
from math import inf

import numpy as np

from headgate.model.arrays import Ints, grouped, moved, places_before
from headgate.model.events import (
    Event,
    Measured,
    NetworkChanged,
    PolicyChanged,
    QueryStopped,
    SourcePolled,
    StepFinished,
    StepStarted,
    TrainArrived,
    UnitDelayed,
    UnitFailed,
)
from headgate.model.network.network import Network
from headgate.model.network.unit_table import UnitTable, grown
from headgate.model.network.units import SharedPriority, units_of
from headgate.model.plan import ALL, BoxCall, Lane, Step
from headgate.policies.interface import Policy, State
from headgate.scheduler.amos_monitor import AmosMonitor
from headgate.scheduler.compiled_selection import CompiledSelection, compiled_selection
from headgate.scheduler.feeds import feeds_of
from headgate.scheduler.filter_order import ConditionOrders
from headgate.scheduler.fusion import check, fuse
from headgate.scheduler.group_priority import GroupPriority, call_groups
from headgate.scheduler.overload import Commit, LossOf, Overload
from headgate.scheduler.queue_columns import QueueColumns
from headgate.scheduler.queues import StreamBuffer
from headgate.scheduler.rows import Rows
from headgate.scheduler.statistics import Statistics


class Scheduler:
    """The state of a run: it takes events, keeps the unit table current, and returns box calls.

    Args:
        workers: the most calls that run at once. A unit never has two calls at once.
        train_tuples: the most tuples per call (Aurora §4.2); a call takes at least one train.
        most_fused: the most units that share a call.
        statistics: learns cost and selectivity from outcomes; None if the table has them.
        shed: commits what units drop from now on, and returns the changes that it has committed.
            Without it, nothing is ever shed.
        loss_of: as in `Overload`.
        call_bytes: the most memory for the tuples of a call; a call takes at least one train.
        call_s: the most seconds of a call, as far as `Statistics.train` can tell.
        first_trains: the first train of each stream's log, for a run that resumes.
        cursors: the next train of each unit, for a run that resumes.
        groups: a number for every unit, the same for units whose code the engine shares.
        shared_priority: how units of a group that stand at the same train are ranked.
        lane: the lane of every call; None for the one that statistics expect to be faster.
    """

    def __init__(
        self,
        network: Network,
        table: UnitTable,
        policy: Policy,
        *,
        workers: int = 1,
        train_tuples: int = ALL,
        most_fused: int = 1,
        call_bytes: float = inf,
        call_s: float = inf,
        shed: Commit | None = None,
        loss_of: LossOf = lambda unit: None,
        statistics: Statistics | None = None,
        first_trains: Sequence[int] = (),
        cursors: Ints | None = None,
        groups: Sequence[int] = (),
        shared_priority: SharedPriority = "pdt",
        lane: Lane | None = None,
    ) -> None:
        self.policy, self.lane, self.call_bytes, self.call_s = policy, lane, call_bytes, call_s
        self.workers, self.train_tuples, self.most_fused = workers, train_tuples, most_fused
        begin = np.zeros(len(table), dtype=np.int64) if cursors is None else cursors
        self._adopt(Rows(network, table, begin, statistics, ConditionOrders()))
        self.groups = np.array(groups, dtype=np.int64) if len(groups) else None
        self._call_groups, self._together = self.groups, GroupPriority(shared_priority, most_fused)
        firsts = first_trains or [0] * len(network.streams)
        self.buffers = [StreamBuffer(first) for first in firsts]
        self._most_tuples = [train_tuples] * len(firsts)
        self._idle, self._active = np.ones((2, len(table)), dtype=np.bool_)
        self._delayed_until_s, self._retry_at_s = np.full(len(table), inf), inf
        self._running = self._calls = self._figures = 0
        self._more_follow = False
        self._monitor: AmosMonitor | None = None
        self._compiled_selection: CompiledSelection | None = None
        self.visible: UnitTable | None = table  # what the policy saw at the last decision
        self.overload = None if shed is None else Overload(self.rows, shed, workers, loss_of)
        self._prepare()

    @property
    def wake_at_s(self) -> float:
        """When to plan again without an event: for the policy, or to retry a delayed unit."""
        return min(self._retry_at_s, self.policy.wake_at_s)

    def hear(self, event: Event) -> None:
        """Update the state by one event, in which units have ids."""
        event = self.rows.event(event)
        if self._monitor is not None:
            self._monitor.hear(event)
        if self.overload is not None:
            self.overload.hear(event)
        match event:
            case TrainArrived():
                self.buffers[event.stream].append(event)
                readers = self._units_of_stream[event.stream]
                if event.tuple_bytes:
                    most = max(1, int(min(self.call_bytes / event.tuple_bytes, ALL)))
                    self._most_tuples[event.stream] = min(self.train_tuples, most)
                    self.table["bytes_in"][readers] = event.tuple_bytes
                self._refresh(readers)
                self._more_follow = event.more_follow
            case StepFinished():
                self._finish(event)
                self._more_follow = event.more_follow
            case UnitDelayed():
                self._delayed_until_s[event.unit] = event.until_s
                self._retry_at_s = min(self._retry_at_s, event.until_s)
                self._rest([event.unit])
            case UnitFailed() | QueryStopped():
                # Its cursor stays, and it is never idle again, so that no plan includes it.
                self._active[event.unit] = False
                self._rest([event.unit])
            case NetworkChanged():
                self._change(event)
            case PolicyChanged():
                self.policy = event.policy
                self._prepare()
            case SourcePolled():
                self.policy.charge_polls(event.stream, event.seconds)

    def plan(self, now_s: float) -> list[BoxCall]:
        """Return the calls to start now, at most one per free worker, with the ids of units."""
        if self._monitor is not None and now_s >= self.policy.wake_at_s:
            self._tell(self._monitor.measured(now_s))
        self._try_again(now_s)
        if self.overload is not None:
            self.overload.look(now_s, self._units, self.groups, self._active)
        calls: list[BoxCall] = []
        while self._running < self.workers and not self._more_follow:
            call = self._next_call(now_s)
            if call is None:
                break
            calls.append(self.rows.call(call))
        return calls

    @property
    def ready(self) -> Ints:
        """The units that have pending tuples and do not run."""
        return np.flatnonzero(self._idle & (self.table["pending"] > 0))

    @property
    def shared_priority(self) -> SharedPriority:
        """How units of a group that stand at the same train are ranked."""
        return self._together.shared_priority

    def lane_text(self, unit: int, tuples: int) -> str:
        """Return the lane that a call of a unit takes, as the first word, and the reason."""
        return self.rows.lane_text(unit, tuples, self.lane)

    def order_text(self, unit: int) -> str | None:
        """Return the order of a unit's conditions and why; None if they were not measured."""
        return self.rows.order_text(unit)

    def passed(self, stream: int) -> int:
        """Return the first train of a stream that a unit still needs; failed units do not count."""
        units = self._units_of_stream[stream]
        units = units[self._active[units]]
        return int(self.cursors[units].min()) if len(units) else self.buffers[stream].end

    def _adopt(self, rows: Rows) -> None:
        """Work on these rows from now on; other threads read them as `rows`."""
        self.network, self.table, self.cursors = rows.network, rows.table, rows.cursors
        self.rows, self.statistics, self._orders = rows, rows.statistics, rows.orders

    def _prepare(self) -> None:
        """Set up everything that depends on the network or the policy, before the next plan."""
        self._units_of_stream = grouped(self.table["stream"], len(self.network.streams))
        self._whole = [path.runs_whole for path in self.network.paths]
        self._columns = QueueColumns(self.network)
        self._units = units = units_of(self.network)
        if self.statistics is not None:
            self.statistics.connect(feeds_of(units), self.table)
        self.policy.prepare(units)
        self._call_groups = call_groups(
            self.groups, self.table, self.policy, len(self.network.classes)
        )
        if self._call_groups is not None:
            # This compiles the code, so that the first decision is as fast as later ones.
            numbers = np.arange(len(self.table))
            for policy in (self.policy, *self.policy.inside()):
                self._together.seen(
                    policy, self.table, numbers, self._call_groups, self.cursors, 0.0
                )
        self._compiled_selection = compiled_selection(
            self.policy, units, self.table, self._call_groups, self.shared_priority
        )
        watched = self.policy.wake_at_s < inf
        self._monitor = AmosMonitor(self.network, self.table, self._active) if watched else None

    def _change(self, event: NetworkChanged) -> None:
        """Add and restart units, add streams, remove dropped units; others keep their state."""
        places = event.network.places
        before = places_before(places, self.network.places)
        table = grown(self.table, units_of(event.network), event.known, before)
        self.groups = np.array(event.groups, dtype=np.int64) if len(event.groups) else None
        cursors = moved(self.cursors, before)
        begin = [places[unit] for unit in event.cursors]
        cursors[begin] = [*event.cursors.values()]
        self._idle, self._active = moved(self._idle, before), moved(self._active, before)
        self._idle[begin] = self._active[begin] = True
        self._delayed_until_s = moved(self._delayed_until_s, before)
        self._delayed_until_s[begin] = inf
        self._retry_at_s = float(self._delayed_until_s.min(initial=inf))
        statistics = None if self.statistics is None else self.statistics.moved(table, before)
        self._adopt(Rows(event.network, table, cursors, statistics, self._orders.moved(before)))
        if self.overload is not None:
            self.overload.change(self.rows, begin)
        for stream in sorted(event.first_trains):
            self.buffers.append(StreamBuffer(event.first_trains[stream]))
            self._most_tuples.append(self.train_tuples)
        for stream, trains in event.kept.items():
            readers = [unit for unit in event.cursors if table["stream"][places[unit]] == stream]
            self.buffers[stream].recall(min(event.cursors[unit] for unit in readers), trains)
        self._prepare()
        for units in self._units_of_stream:
            self._refresh(units)

    def _rest(self, units: Sequence[int]) -> None:
        """Take units out of all plans until they are refreshed."""
        rows = np.array(units)
        self._idle[rows] = self.table["ready"][rows] = False
        if self._compiled_selection is not None:
            self._compiled_selection.note(rows)

    def _try_again(self, now_s: float) -> None:
        if now_s < self._retry_at_s:
            return
        for unit in np.flatnonzero(self._delayed_until_s <= now_s):
            self._delayed_until_s[unit] = inf
            self._idle[unit] = self._active[unit]
            self._refresh(np.array([unit]))
        self._retry_at_s = float(self._delayed_until_s.min(initial=inf))

    def _next_call(self, now_s: float) -> BoxCall | None:
        measured = self.statistics is None or self.statistics.knows_all
        if self._compiled_selection is not None and measured:
            self.visible = self.table
            step = self._compiled_selection.pick(self.table, now_s)
            return None if step is None else self._call_of(self._beside(step), now_s)
        ready = self.ready
        if not len(ready):
            return None
        if self.statistics is not None and len(new := self.statistics.unmeasured(ready)):
            # A query without statistics runs first and alone, so that its own cost is measured.
            self.visible = None
            return self._call((int(new[0]),), ALL, None, now_s)
        table, in_charge = self.table, self.policy.in_charge(now_s)
        visible = table
        if self._call_groups is not None:
            visible = self._together.seen(
                in_charge, table, ready, self._call_groups, self.cursors, now_s
            )
        self.visible = visible
        steps = self.policy.plan(State(visible, ready, self._figures), now_s)
        check(steps, ready, self.policy.name)
        return self._call_of(steps, now_s) if steps else None

    def _beside(self, step: Step) -> list[Step]:
        """Return a step, and steps of the ready units that may join its call."""
        if self.most_fused < 2:
            return [step]
        readers = self._units_of_stream[self.table["stream"][step.unit]]
        ready = readers[self.table["ready"][readers]]
        return [step, *(Step(unit) for unit in ready.tolist() if unit != step.unit)]

    def _call_of(self, steps: Sequence[Step], now_s: float) -> BoxCall:
        table, in_charge = self.table, self.policy.in_charge(now_s)
        whole = self._whole[steps[0].unit]

        def may_fuse(unit: int, other: int) -> bool:
            return whole == self._whole[other] and self.policy.may_fuse(table, unit, other)

        members, stop = fuse(
            steps, table, self.cursors, most=self.most_fused, may_fuse=may_fuse,
            at_any_cost=in_charge.fuses_at_any_cost, groups=self.groups, only_group=whole,
        )  # fmt: skip
        tuples = min(step.tuples for step in members)
        return self._call(tuple(step.unit for step in members), tuples, stop, now_s)

    def _call(self, units: tuple[int, ...], tuples: int, stop: int | None, now_s: float) -> BoxCall:
        stream = int(self.table["stream"][units[0]])
        buffer, first = self.buffers[stream], int(self.cursors[units[0]])
        most = min(self._most_tuples[stream], self.rows.train(units, self.call_s, self.lane))
        end = buffer.train_after(first, min(tuples, most))
        end = end if stop is None else min(end, stop)
        call_tuples = buffer.tuples(first, end)
        lane = self.rows.lane(units, call_tuples, self.lane)
        orders = self._orders.of(units)
        call = BoxCall(self._calls, units, stream, first, end, call_tuples, lane, orders)
        self._calls += 1
        self._running += 1
        self._rest(units)
        started = StepStarted(now_s, call)
        if self.overload is not None:
            self.overload.hear(started)
        self._tell(started)
        return call

    def _tell(self, event: StepStarted | StepFinished | Measured) -> None:
        self.policy.hear(event)

    def _finish(self, event: StepFinished) -> None:
        call = event.call
        self._running -= 1
        done = [unit for unit in call.units if unit not in event.failed]
        self.cursors[done] = call.end_train
        self._idle[done] = self._active[done]
        if self.statistics is not None:
            changed = self.statistics.learn(self.table, event)
            if self._compiled_selection is not None:
                self._compiled_selection.note(changed)
            for unit in [sample.unit for sample in event.samples]:
                conditions = self.network.paths[unit].conditions
                self._orders.improve(unit, self.statistics.conditions(unit), conditions)
            self._figures += 1
        self._refresh(np.array(call.units))
        self._tell(event)
        self.buffers[call.stream].drop(self.passed(call.stream))

    def _refresh(self, units: Ints) -> None:
        """Update the pending tuples, arrival times and costs of units of one stream."""
        if not len(units):
            return
        buffer = self.buffers[self.table["stream"][units[0]]]
        self._columns.update(
            self.table, units, self.cursors[units], buffer, self._idle[units], self.train_tuples
        )
        if self._compiled_selection is not None:
            self._compiled_selection.note(units)
