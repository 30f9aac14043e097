"""The loop in virtual time, compiled: arrivals, ends of calls, decisions, new calls."""

from functools import cache
from typing import Any

import numpy as np
from numba import types

from headgate.compiled import compiled, with_functions
from headgate.model.network.unit_table import UnitTable
from headgate.simulation.kernel.arrive import admit
from headgate.simulation.kernel.closings import close_all, close_behind
from headgate.simulation.kernel.execute import deliver, start
from headgate.simulation.kernel.joins import forget
from headgate.simulation.kernel.queues import open_merges
from headgate.simulation.kernel.samples import note
from headgate.simulation.kernel.train_size import room_needed, take
from headgate.simulation.loop import plain_loop
from headgate.simulation.world.pointer import World
from headgate.simulation.world.records import NONE
from headgate.simulation.world.world import DECIDE, DONE, GROW, MORE, UNTIL

changed: Any = None
pick: Any = None
"""The functions of a policy's selection, which `with_functions` puts in their place in `_run`."""


@compiled
def free_worker(world: World) -> int:
    for number in range(len(world.workers)):
        if world.workers[number].unit == NONE:
            return number
    return NONE


@compiled
def catch_up(world: World) -> bool:
    """Process all that has happened by now: arrivals first, then calls in the order they end.

    Then windows that have ended close. Return False if there is no room for it.
    """
    clock = world.clock[0]
    clock.pending_area += clock.pending * (clock.now_s - clock.met_at_s)
    clock.shared_area += clock.shared * (clock.now_s - clock.met_at_s)
    clock.met_at_s = clock.now_s
    if 0 < clock.forget_at <= clock.entries:
        forget(world)
    if not admit(world):
        return False
    while True:
        ended = NONE
        for number in range(len(world.workers)):
            worker = world.workers[number]
            if worker.unit != NONE and worker.ends_at_s <= clock.now_s:
                earlier = ended == NONE or worker.ends_at_s < world.workers[ended].ends_at_s
                tie = ended != NONE and worker.ends_at_s == world.workers[ended].ends_at_s
                if earlier or (tie and worker.call < world.workers[ended].call):
                    ended = number
        if ended == NONE:
            break
        unit = world.workers[ended].unit
        deliver(world, ended)
        if not close_behind(world, unit):
            clock.closes_at_s = clock.now_s
            return False
    if clock.closes_at_s <= clock.now_s and not close_all(world):
        return False
    settings = world.settings[0]
    if settings.merge_end > settings.merge_first:
        open_merges(world)
    note(world)
    return True


@compiled
def advance(world: World, until_s: float) -> int:
    """Move time to the next arrival or end of a call, at most until an instant."""
    clock = world.clock[0]
    next_s, free = np.inf, False
    for number in range(len(world.workers)):
        next_s = min(next_s, world.workers[number].ends_at_s)
        free = free or world.workers[number].unit == NONE
    # While every worker is busy, no decision is possible: arrivals wait for the next end of a call.
    if free and clock.next_arrival < len(world.order):
        next_s = min(next_s, world.order_at_s[clock.next_arrival])
    if next_s == np.inf:
        return DONE  # nothing can happen any more, even if the caller has later plans
    if free:  # no window closes after the last event of a run
        next_s = min(next_s, clock.closes_at_s)
    if next_s >= until_s:  # the caller acts at that instant before any decision
        clock.now_s = max(clock.now_s, until_s)
        return UNTIL
    clock.now_s = max(clock.now_s, next_s)
    return MORE


@compiled
def has_room(world: World, unit: int, tuples: int) -> bool:
    """Return True if the pool, the stack and the list of responses have room for a call."""
    clock = world.clock[0]
    entries, results, stacked = room_needed(world, unit, tuples)
    room = clock.entries + entries <= len(world.pool) and stacked + 8 <= len(world.stack)
    return room and (not world.settings[0].keep or 3 * (clock.kept + results) <= len(world.kept))


@compiled
def begin(world: World, unit: int, step_tuples: int, decided_s: float) -> bool:
    """Start a call on a free worker. If there is no room, note the unit and return False."""
    clock = world.clock[0]
    tuples = take(world, unit, step_tuples)
    if not has_room(world, unit, tuples):
        clock.chosen, clock.chosen_tuples, clock.chosen_s = unit, step_tuples, decided_s
        return False
    clock.chosen = NONE
    start(world, free_worker(world), unit, tuples, decided_s)
    return True


def run(
    world: World, memory: Any, changed: Any, pick: Any, until_s: float, most_decisions: int
) -> int:
    """Run with a policy in compiled form, and return why the loop stopped."""
    loop = _loop(changed, pick, bool(world.settings["plain"][0]))
    return int(loop(world, memory, until_s, most_decisions))


@cache
def _loop(changed: Any, pick: Any, is_plain: bool) -> Any:
    """Return the loop of plain worlds or of all worlds, compiled for a policy's functions."""
    template = plain_loop.run if is_plain else _run
    return with_functions(template, borrows=is_plain, changed=changed, pick=pick)


def compile_parts(memory: Any, changed: Any, pick: Any, table: UnitTable) -> None:
    """Compile a policy's functions separately, before the loop does.

    The plain loop may not allocate arrays, and a function compiled as part of it may not either.
    """
    kinds = changed.typeof_pyval(memory), changed.typeof_pyval(table)
    changed.compile((*kinds, types.int64, types.float64))
    pick.compile((*kinds, types.float64))


def _run(world: World, memory: Any, until_s: float, most_decisions: int) -> int:
    """Run any world. This is a template, as `plain.run` is."""
    clock, settings = world.clock[0], world.settings[0]
    decisions = 0
    while True:
        chosen = clock.chosen
        if chosen != NONE:
            if not begin(world, chosen, clock.chosen_tuples, clock.chosen_s):
                return GROW
            changed(memory, world.table, chosen, clock.now_s)
            decisions += 1
        if not catch_up(world):
            return GROW
        while free_worker(world) != NONE:
            for place in range(clock.changed):
                unit = world.changed[place]
                world.queues[unit].touched = False
                changed(memory, world.table, unit, clock.now_s)
            clock.changed = 0
            unit, tuples, examined = pick(memory, world.table, clock.now_s)
            if unit < 0:
                break
            decisions += 1
            clock.decisions += 1
            clock.examined += examined
            decided_s = settings.decision_s + examined * settings.examine_s
            decided_s += (examined - 1) * settings.visit_s
            if not begin(world, unit, tuples, decided_s):
                return GROW
            changed(memory, world.table, unit, clock.now_s)
        why = advance(world, until_s)
        if why != MORE:
            return why
        if decisions >= most_decisions:
            return MORE


@compiled
def run_to_decision(world: World, until_s: float) -> int:
    """Run until a worker is free and a unit is ready, so that Python can decide."""
    clock = world.clock[0]
    while True:
        if clock.chosen != NONE and not begin(
            world, clock.chosen, clock.chosen_tuples, clock.chosen_s
        ):
            return GROW
        if not catch_up(world):
            return GROW
        for place in range(clock.changed):
            world.queues[world.changed[place]].touched = False
        clock.changed = 0
        if free_worker(world) != NONE:
            for unit in range(len(world.table)):
                if world.table[unit].ready:
                    return DECIDE
        why = advance(world, until_s)
        if why != MORE:
            return why
