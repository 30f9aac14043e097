"""A box call in virtual time, compiled: what happens to its tuples, and how long it takes."""

import numpy as np

from headgate.compiled import compiled
from headgate.simulation.kernel.closings import finish_all, take_in
from headgate.simulation.kernel.fates import copies_of, cost_of
from headgate.simulation.kernel.joins import match, push
from headgate.simulation.kernel.learn import learn, update_units
from headgate.simulation.kernel.memory import release_call, release_entry, store
from headgate.simulation.kernel.outputs import output
from headgate.simulation.kernel.queues import append, new_entry, refresh, step_over
from headgate.simulation.world.pointer import World
from headgate.simulation.world.records import AGGREGATE, JOIN, NONE
from headgate.workloads.random_hash import mixed


@compiled
def start(world: World, worker_number: int, unit: int, tuples: int, decided_s: float) -> None:
    """Start a call on a worker: run its tuples one by one and count their results.

    A result counts at the instant when it is computed. What the call puts into other queues is
    delivered when the call ends.
    """
    clock, settings = world.clock[0], world.settings[0]
    queue, row, worker = world.queues[unit], world.table[unit], world.workers[worker_number]
    storage_s = settings.storage_s if decided_s >= 0.0 else 0.0
    decided_s = max(decided_s, 0.0)
    switch_s = settings.switch_s * len(world.table) if unit != clock.last else 0.0
    clock.last = unit
    before_s = decided_s + storage_s + (row.overhead_s + switch_s)
    begun_s, spent_s = clock.now_s, 0.0
    queue.running = True
    row.ready = False
    worker.unit, worker.call, worker.tuples = unit, clock.calls, tuples
    worker.head = worker.tail = NONE
    worker.arrived_sum_s = worker.mass = 0.0
    worker.known_s = worker.known_outputs = 0.0
    worker.taken = queue.cursor if queue.stream >= 0 else queue.head
    worker.stored = 0
    outputs_before, figures_before = clock.outputs, clock.figures
    queued_sum_s = done_sum_s = 0.0
    place, entry, last = queue.cursor, queue.head, NONE
    for _ in range(tuples):
        if queue.stream >= 0:
            stream = world.streams[queue.stream]
            number, mass, owner, source = place, 1.0, -2 - place, queue.stream
            arrived_at_s = ideal_at_s = queued_at_s = world.arrivals[stream.first + place]
            place = step_over(world, unit, place + 1)
        else:
            slot = world.pool[entry]
            number, mass, owner, source = slot.number, slot.mass, slot.owner, slot.target
            arrived_at_s, ideal_at_s = slot.arrived_at_s, slot.ideal_at_s
            queued_at_s = slot.queued_at_s
            last, entry = entry, slot.next
        earlier_s = spent_s
        if queue.line:
            spent_s = _run_line(
                world, worker_number, unit, arrived_at_s, ideal_at_s + row.overhead_s, number, mass,
                begun_s, before_s, spent_s,
            )  # fmt: skip
        else:
            spent_s = _run_tree(
                world, worker_number, unit, arrived_at_s, ideal_at_s + row.overhead_s, number, mass,
                owner, source, begun_s, before_s, spent_s,
            )  # fmt: skip
        done_at_s = begun_s + (spent_s + before_s)
        if owner <= -2:
            held = world.streams[source].first - 2 - owner
            world.left_s[held] = max(world.left_s[held], done_at_s)
        else:
            world.pool[owner].left_at_s = max(world.pool[owner].left_at_s, done_at_s)
        done_sum_s += spent_s
        worker.arrived_sum_s += arrived_at_s
        worker.mass += mass
        worker.known_s += spent_s - earlier_s
        queued_sum_s += queued_at_s
    if last != NONE:
        world.pool[last].next, queue.head = NONE, entry
        if entry == NONE:
            queue.tail = NONE
    if clock.figures > figures_before:
        update_units(world, unit)
    seconds = before_s + spent_s
    early_s = tuples * spent_s - done_sum_s  # a tuple is pending until it is done
    held_s = tuples * (begun_s + seconds) - queued_sum_s - early_s
    clock.pending_area -= early_s
    queue.pending_area += held_s
    clock.bytes_area += held_s * row.bytes_in
    queue.cursor = place
    queue.tuples_in += tuples
    queue.busy_s += seconds
    worker.known_outputs = clock.outputs - outputs_before
    worker.ends_at_s = begun_s + seconds
    clock.calls += 1
    clock.overhead_s += row.overhead_s + switch_s
    clock.storage_s += storage_s
    clock.scheduler_s += decided_s
    clock.busy_s += seconds


@compiled
def _run_line(
    world: World, worker: int, unit: int, arrived_at_s: float, ideal_at_s: float, number: int,
    mass: float, begun_s: float, before_s: float, spent_s: float,
) -> float:  # fmt: skip
    """Run a tuple through a plain line of boxes. Return the seconds of the call so far."""
    queue, settings, clock = world.queues[unit], world.settings[0], world.clock[0]
    last = queue.first_stage + queue.stages - 1
    for position in range(queue.first_stage, last + 1):
        cost_s = cost_of(world, position, number)
        if settings.fluid:
            cost_s *= mass
        spent_s += cost_s
        ideal_at_s += cost_s
        clock.box_calls += 1
        passes = True
        stage = world.stages[position]
        if stage.kind == AGGREGATE:
            left_at_s = begun_s + (spent_s + before_s)
            number = take_in(world, stage.closing, arrived_at_s, left_at_s, ideal_at_s)
            if number == NONE:
                return spent_s
        elif settings.fluid:
            mass *= stage.selectivity
        elif stage.selectivity < 1.0 or stage.drift >= 0 or stage.fates >= 0:
            passes = copies_of(world, position, number, arrived_at_s) > 0
        if settings.learns and not settings.fluid and stage.kind != AGGREGATE:
            learn(world, position, 1.0 if passes else 0.0, cost_s)
        if not passes:
            left_at_s = begun_s + (spent_s + before_s)
            finish_all(world, position, arrived_at_s, left_at_s, ideal_at_s)
            return spent_s
    left_at_s = begun_s + (spent_s + before_s)
    _emit(world, worker, last, arrived_at_s, ideal_at_s, number, mass, left_at_s)
    return spent_s


@compiled
def _emit(
    world: World, worker_number: int, position: int, arrived_at_s: float, ideal_at_s: float,
    number: int, mass: float, left_at_s: float,
) -> None:  # fmt: skip
    """Pass an output tuple of a stage to queries, and to the queues of other units."""
    stage, worker = world.stages[position], world.workers[worker_number]
    for link in range(stage.query_first, stage.query_end):
        output(world, world.links[link], arrived_at_s, ideal_at_s, left_at_s, mass)
    owner = NONE
    for link in range(stage.fill_first, stage.fill_end):
        entry = new_entry(world)
        slot = world.pool[entry]
        slot.arrived_at_s, slot.ideal_at_s = arrived_at_s, ideal_at_s
        slot.queued_at_s = left_at_s
        slot.number, slot.mass, slot.target = number, mass, world.links[link]
        if owner == NONE:
            owner, slot.holders = entry, 0
        slot.owner = owner
        world.pool[owner].holders += 1
        if worker.tail == NONE:
            worker.head = entry
        else:
            world.pool[worker.tail].next = entry
        worker.tail = entry


@compiled
def _run_tree(
    world: World, worker: int, unit: int, arrived_at_s: float, ideal_at_s: float, number: int,
    mass: float, owner: int, source: int, begun_s: float, before_s: float, spent_s: float,
) -> float:  # fmt: skip
    """Run a tuple and everything derived from it through a tree of boxes, depth first.

    `owner` holds the tuple itself. The first box may store that tuple in a join window; the other
    boxes store new tuples. Return the seconds of the call so far.
    """
    queue, settings, clock, stack = (
        world.queues[unit], world.settings[0], world.clock[0], world.stack,
    )  # fmt: skip
    top = 0
    push(world, top, queue.first_stage, arrived_at_s, ideal_at_s, number, mass)
    top += 1
    while top > 0:
        top -= 1
        item = stack[top]
        position, number, mass = item.target, item.number, item.mass
        arrived_at_s, reached_at_s = item.arrived_at_s, item.ideal_at_s
        stage = world.stages[position]
        cost_s = cost_of(world, position, number)
        if settings.fluid:
            cost_s *= mass
        spent_s += cost_s
        clock.box_calls += 1
        left_at_s = begun_s + (spent_s + before_s)
        bottom = top
        if stage.kind == AGGREGATE:
            number = take_in(world, stage.closing, arrived_at_s, left_at_s, reached_at_s + cost_s)
            if number == NONE:
                continue
            push(world, top, position, arrived_at_s, reached_at_s + cost_s, number, 1.0)
            top += 1
        elif stage.kind == JOIN:
            if position != queue.first_stage:
                owner = NONE
                world.workers[worker].stored += 1
            top = match(
                world, position, top, arrived_at_s, reached_at_s, number, cost_s, owner, source
            )
            if settings.learns:
                learn(world, position, float(top - bottom), cost_s)
        else:
            copies = 1
            if settings.fluid:
                mass *= stage.selectivity
            else:
                copies = copies_of(world, position, number, arrived_at_s)
                if settings.learns:
                    learn(world, position, float(copies), cost_s)
            for copy in range(copies):
                copy_number = number if copy == 0 else mixed(number, copy)
                push(world, top, position, arrived_at_s, reached_at_s + cost_s, copy_number, mass)
                top += 1
        # The outputs are on the stack, in order. Each is passed on, and then replaced by its
        # entries for the children, the last first, so that the first is on top.
        outputs = top - bottom
        if outputs == 0:
            finish_all(world, position, arrived_at_s, left_at_s, reached_at_s + cost_s)
        for place in range(bottom, top):
            out = stack[place]
            _emit(
                world, worker, position, out.arrived_at_s, out.ideal_at_s, out.number, out.mass,
                left_at_s,
            )  # fmt: skip
        top = _descend(world, position, bottom, outputs)
    return spent_s


@compiled
def _descend(world: World, position: int, bottom: int, outputs: int) -> int:
    """Replace the outputs of a stage by entries for its children. Return the top of the stack."""
    stack = world.stack
    children, child = 0, world.stages[position].child
    while child != NONE:
        children += 1
        child = world.stages[child].sibling
    if children == 0:
        return bottom
    # The outputs are first copied behind their blocks, so that nothing is overwritten before it is
    # read: output k becomes the mirrored block (outputs − 1 − k), its first child on top.
    spare = bottom + outputs * children
    for k in range(outputs):
        out = stack[bottom + k]
        push(world, spare + k, 0, out.arrived_at_s, out.ideal_at_s, out.number, out.mass)
    for k in range(outputs):
        block = bottom + (outputs - 1 - k) * children
        child, offset = world.stages[position].child, children - 1
        while child != NONE:
            out = stack[spare + k]
            push(
                world, block + offset, child, out.arrived_at_s, out.ideal_at_s, out.number, out.mass
            )
            offset -= 1
            child = world.stages[child].sibling
    return spare


@compiled
def deliver(world: World, worker_number: int) -> None:
    """End a call: remove its tuples from the queue and deliver its output to other queues.

    Each output has waited in memory since it was computed.
    """
    clock, worker = world.clock[0], world.workers[worker_number]
    unit, tuples = worker.unit, worker.tuples
    queue, row = world.queues[unit], world.table[unit]
    queue.running = False
    row.pending -= tuples
    row.amount -= worker.mass
    queue.arrived_sum_s -= worker.arrived_sum_s
    clock.pending -= tuples
    clock.bytes -= tuples * row.bytes_in
    release_call(world, worker_number)
    store(world, worker.stored)
    world.class_pending[row.query_class] -= tuples
    if world.settings[0].foresight:
        row.pending_s -= worker.known_s
        row.pending_outputs -= worker.known_outputs
    if queue.slide_s > 0.0:
        row.due = max(0, row.due - tuples)
    worker.unit = NONE
    worker.ended_at_s, worker.ends_at_s = worker.ends_at_s, np.inf
    entry = worker.head
    while entry != NONE:
        slot, following = world.pool[entry], world.pool[entry].next
        waited_s = clock.now_s - slot.queued_at_s
        if slot.owner == entry:
            store(world, 1)
            clock.shared_area += waited_s
        target = slot.target
        if world.queues[target].active:
            clock.pending_area += waited_s
            append(world, target, entry)
            refresh(world, target)
        else:
            release_entry(world, entry)
        entry = following
    refresh(world, unit)
