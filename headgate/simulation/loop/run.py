"""A run in virtual time: by the compiled loop, or by Python plans if a policy is not compiled."""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from math import inf

import numpy as np

from headgate.errors import ConfigRefused, PlanRejected
from headgate.model.arrays import Floats
from headgate.model.events import StepFinished, StepStarted
from headgate.model.network.unit_table import UnitTable
from headgate.model.network.units import Units
from headgate.model.outlook import Outlook
from headgate.model.plan import ALL, BoxCall
from headgate.policies.interface import Policy, Selection, State
from headgate.scheduler.shedder import Load, Shedder
from headgate.simulation.build.build import build, grown, preload
from headgate.simulation.kernel.clear import clear
from headgate.simulation.kernel.queues import refresh, refresh_all
from headgate.simulation.loop import compiled_loop
from headgate.simulation.loop.changes import Replacement, Switch
from headgate.simulation.loop.forecast import Forecast
from headgate.simulation.loop.look_ahead import LookAhead
from headgate.simulation.loop.plain_loop import is_plain
from headgate.simulation.loop.qos_readings import QoSReadings
from headgate.simulation.loop.run_report import Worth
from headgate.simulation.world.pointer import World
from headgate.simulation.world.records import NONE
from headgate.simulation.world.setting import Setting
from headgate.simulation.world.world import DECIDE, DONE, GROW, MORE, UNTIL

NOTHING = np.zeros(0)
OUTLOOK_DELAY_S = 0.05
"""Virtual seconds from the request for an outlook to its answer, as if a worker computed it."""

USUAL_TRAIN = 1
"""The most tuples of a call, unless a workload, a run or a policy's definition says otherwise."""


class Simulation:
    """A world, the policy that decides in it, and the events that come from outside.

    Args:
        train_tuples: the most tuples of a call, whatever the policy.
        usual_train: the same, for policies whose definition does not fix it.
        switches: queries that come and go. A query that comes is absent until then.
        replacements: policies and specifications that replace the present ones.
        shedder: drops tuples in overload, from queries that allow it.
    """

    decisions_a_report = 500_000
    """Decisions between two reports of progress; with 1, every decision can be observed."""

    def __init__(
        self,
        units: Units,
        table: UnitTable,
        policy: Policy,
        arrivals: dict[str, Floats],
        setting: Setting,
        *,
        train_tuples: int | None = None,
        usual_train: int = USUAL_TRAIN,
        switches: Sequence[Switch] = (),
        replacements: Sequence[Replacement] = (),
        shedder: Shedder | None = None,
    ) -> None:
        self.units, self.policy, self.setting = units, policy, setting
        self._train_tuples, self._usual_train = train_tuples, usual_train
        self.world: World = build(units, table, arrivals, setting)
        self._switches = sorted(switches, key=lambda switch: switch.at_s)
        self._replacements = sorted(replacements, key=lambda replacement: replacement.at_s)
        self._shedder = shedder
        self._shed_at_s = inf
        self._qos_readings = None if shedder is None else QoSReadings(units, self.world)
        self._worth = Worth(self.world)
        self._stands_for = 1
        self.ahead = LookAhead(self)
        self._outlook: tuple[float, Outlook] | None = None
        self._selections: dict[Policy, Selection | None] = {}  # keys keep policies alive
        self._in_charge: Policy | None = None
        self._running: dict[int, tuple[BoxCall, float]] = {}
        self._offer_look_ahead()
        policy.prepare(units)
        preload(self.world, units, setting)
        refresh_all(self.world)
        self._begin_switches()
        if shedder is not None:
            self._shed_at_s = 0.0
            ends_s = float(self.world.order_at_s[-1]) if len(self.world.order_at_s) else 0.0
            epochs = int(ends_s / shedder.period_s) + 2
            self.world = replace(self.world, shed=np.zeros((len(units), epochs)))
            self._worth.world = self.world
            self.world.settings["shed_s"] = shedder.period_s
            self.world.queues["shed_value"] = shedder.by_value
        self.world.settings["plain"] = is_plain(self.world)

    @property
    def now_s(self) -> float:
        return float(self.world.clock["now_s"][0])

    def run(self, progress: Callable[[float], None] = lambda now_s: None) -> None:
        """Run until every tuple has left, or nothing can happen any more."""
        self.run_until(inf, progress)

    def run_until(
        self, at_s: float, progress: Callable[[float], None] = lambda now_s: None
    ) -> None:
        """Run until an instant: arrivals and ends at that instant happen, but no call starts then.

        The results of a running call are already counted, with their future departures.
        """
        while True:
            until_s = min(self._apply_due(), at_s)
            why = self._go_on(until_s)
            progress(self.now_s)
            if why == GROW:
                self._grow()
            elif why == DONE or (why == UNTIL and until_s >= at_s):
                break
        # While workers are busy, arrivals are not admitted.
        while not compiled_loop.catch_up(self.world):
            self._grow()
        self._finish_calls()

    def fork(
        self, world: World, policy: Policy, selection: Selection | None, train: int
    ) -> "Simulation":
        """Return a run of another policy that goes on from a copy of the present world.

        Nothing comes from outside: no switch, no replacement, no shedding.

        Args:
            train: how many tuples each tuple of the copy stands for.
        """
        twin = copy(self)
        twin.world, twin.policy, twin._worth = world, policy, Worth(world)
        twin._switches, twin._replacements = [], []
        twin._shedder, twin._shed_at_s = None, inf
        twin._selections, twin._running = {policy: selection}, {}
        twin._in_charge, twin._stands_for = None, train
        twin._outlook = None
        return twin

    def _offer_look_ahead(self) -> None:
        """Give the look-ahead to a policy that asks for it, and forget the outlook of another."""
        self._outlook = None
        for policy in (self.policy, *self.policy.inside()):
            if policy.looks_ahead:
                policy.look_ahead = self._look_ahead

    def _look_ahead(self, candidates: Sequence[Policy], horizon_s: float) -> None:
        if self._outlook is not None:
            return  # the answer to the last request is still on its way
        outlook = self.ahead.outlook(candidates, horizon_s)
        if outlook is not None:
            self._outlook = self.now_s + OUTLOOK_DELAY_S, outlook

    def _grow(self) -> None:
        self.world = grown(self.world)
        self._worth.world = self.world

    def _apply_due(self) -> float:
        """Apply the switches, shedding and alarms that are due, and return when the next one is."""
        now_s = self.now_s
        # While all workers are busy, arrivals are not admitted. They are admitted here first, so
        # that a query that comes does not get them. If there is no room, the loop asks for it next.
        if self._next_s() <= now_s and not compiled_loop.catch_up(self.world):
            return now_s
        while self._switches and self._switches[0].at_s <= now_s:
            self._switch(self._switches.pop(0))
        while self._replacements and self._replacements[0].at_s <= now_s:
            self._replace(self._replacements.pop(0))
        if self._shedder is not None and self._shed_at_s <= now_s:
            self._shed()
        if self.policy.wake_at_s <= now_s:
            self.policy.hear(self._worth.measured(now_s))
        if self._outlook is not None and self._outlook[0] <= now_s:
            (_, outlook), self._outlook = self._outlook, None
            self.policy.hear_outlook(outlook, now_s)
        world = self.world
        working = bool((world.workers["unit"] != NONE).any()) or bool(world.table["ready"].any())
        more = working or world.clock["next_arrival"][0] < len(world.order)
        return self._next_s() if more else inf

    def _next_s(self) -> float:
        switch_s = self._switches[0].at_s if self._switches else inf
        replaced_s = self._replacements[0].at_s if self._replacements else inf
        outlook_s = self._outlook[0] if self._outlook else inf
        return min(switch_s, replaced_s, self.policy.wake_at_s, self._shed_at_s, outlook_s)

    def _go_on(self, until_s: float) -> int:
        # Only a policy that sets a wake-up time leaves every decision until then to another one.
        inner = self.policy
        if inner.wake_at_s < inf:
            inner = inner.in_charge(self.now_s)
        if inner is not self._in_charge:
            self._in_charge = inner
            self.world.settings["train_tuples"] = min(self._train(inner), ALL)
            self.world.settings["visit_s"] = self.setting.visit_s * inner.visits_empty
            refresh_all(self.world)
        selection = self.selection(inner)
        if selection is None:
            return self._plan_until(inner, until_s)
        parts = selection.memory, selection.changed, selection.pick
        return compiled_loop.run(self.world, *parts, until_s, self.decisions_a_report)

    def _train(self, inner: Policy) -> int:
        train = self._usual_train if inner.tuples_a_step is None else inner.tuples_a_step
        if self._train_tuples is not None:
            train = self._train_tuples
        return max(1, train // self._stands_for)

    def selection(self, inner: Policy) -> Selection | None:
        """Return a policy in compiled form, or None if it has no such form."""
        if inner not in self._selections:
            table = self.world.table
            moves = bool((table["overhead_s"] > 0).any()) and self._train(inner) > 1
            learns = self.setting.learns or moves
            selection = inner.selection(self.units, table, learns=learns)
            if selection is not None:
                compiled_loop.compile_parts(
                    selection.memory, selection.changed, selection.pick, table
                )
            self._selections[inner] = selection
        return self._selections[inner]

    def _plan_until(self, policy: Policy, until_s: float) -> int:
        world, table = self.world, self.world.table
        foresight = Forecast(world) if self.setting.foresight else None
        for _ in range(max(1, self.decisions_a_report // 100)):
            why = int(compiled_loop.run_to_decision(self.world, until_s))
            self._finish_calls()
            if why != DECIDE:
                return why
            ready = np.flatnonzero(table["ready"])
            now_s, clock = self.now_s, world.clock[0]
            steps = policy.plan(State(table, ready, int(clock["figures"]), foresight), now_s)
            if not steps:
                name = policy.name or type(policy).__name__
                raise PlanRejected(policy=name, unit=int(ready[0]), reason="waits, but nobody runs")
            step = steps[0]
            if not 0 <= step.unit < len(table) or not table["ready"][step.unit]:
                reason = "has nothing pending, runs, or does not exist"
                raise PlanRejected(policy=policy.name, unit=step.unit, reason=reason)
            settings = self.setting
            decided_s = settings.decision_s + settings.examine_s * len(ready)
            decided_s += settings.poll_s * policy.take_polls()
            number, worker = int(clock["calls"]), int(compiled_loop.free_worker(self.world))
            begun = compiled_loop.begin(
                self.world, step.unit, step.tuples, -1.0 if step.continues else decided_s
            )
            if not begun:
                clock["chosen"] = NONE  # the policy plans again when there is room
                return GROW
            clock["decisions"] += not step.continues
            tuples = int(world.workers["tuples"][worker])
            call = BoxCall(number, (step.unit,), int(table["stream"][step.unit]), 0, tuples, tuples)
            self._running[worker] = (call, now_s)
            self.policy.hear(StepStarted(now_s, call))
        return MORE

    def _finish_calls(self) -> None:
        """Report the calls that have ended since the last plan to the policy, in order of end."""
        rows = self.world.workers
        ended = [worker for worker in self._running if rows["unit"][worker] == NONE]
        for worker in sorted(ended, key=lambda number: float(rows["ended_at_s"][number])):
            call, begun_s = self._running.pop(worker)
            ended_s, out = float(rows["ended_at_s"][worker]), int(rows["known_outputs"][worker])
            event = StepFinished(ended_s, call, ended_s - begun_s, (out,), (NOTHING,))
            self.policy.hear(event)

    def _begin_switches(self) -> None:
        names = {path.query.name for path in self.units.network.paths}
        for switch in self._switches:
            if switch.query not in names:
                self.units.network.unit_number(switch.query)
        first = {switch.query: switch.does for switch in reversed(self._switches)}
        self._absent = {query for query, does in first.items() if does == "come"}
        self._activate()

    def _switch(self, switch: Switch) -> None:
        if switch.does == "come":
            self._absent.discard(switch.query)
        else:
            self._absent.add(switch.query)
        self._activate()

    def _replace(self, replacement: Replacement) -> None:
        if replacement.policy is not None:
            self.policy = replacement.policy()
            self._offer_look_ahead()
            self.policy.prepare(self.units)
            if self.policy.foresees and not self.setting.foresight:
                raise ConfigRefused(
                    path="simulation", key="at", value=self.policy.name,
                    expected="a policy that foresees nothing, or one that foresees from the start",
                )  # fmt: skip
        if replacement.specification is not None:
            if not hasattr(self.policy, "specification"):
                raise ConfigRefused(
                    path="simulation", key="at", value=replacement.specification,
                    expected=f"for a policy with a specification, not '{self.policy.name}'",
                )  # fmt: skip
            self.policy.specification = replacement.specification

    def _activate(self) -> None:
        """Activate the units that have at least one present query, and deactivate the others."""
        paths = self.units.network.paths
        for shape in self.units.shapes:
            names = {paths[query].query.name for query in shape.queries}
            present = not names <= self._absent
            queue = self.world.queues[shape.number]
            if queue["active"] and not present:
                clear(self.world, shape.number)
            queue["active"] = present
            refresh(self.world, shape.number)
        self.world.clock["closes_at_s"] = min(self.now_s, self.world.clock["closes_at_s"][0])
        for number, path in enumerate(paths):
            row = self.world.results[number]
            if path.query.name in self._absent:
                row["since_s"] = inf
            elif row["since_s"] == inf:
                row["since_s"] = self.now_s

    def _shed(self) -> None:
        shedder, world, now_s = self._shedder, self.world, self.now_s
        assert shedder is not None
        assert self._qos_readings is not None
        judgement = self._qos_readings.judge(world, now_s, shedder.period_s)
        load = Load(
            at_s=now_s,
            arrived=world.streams["arrived"].copy(),
            pending=world.table["pending"].copy(),
            workers=len(world.workers),
            poor=judgement.poor,
            acceptable=judgement.acceptable,
        )
        epoch = int(now_s / shedder.period_s + 0.5)
        rates = shedder.rates(load, self.units, world.table)
        if epoch < world.shed.shape[1]:
            world.shed[:, epoch] = rates
        self._shed_at_s = (epoch + 1) * shedder.period_s
