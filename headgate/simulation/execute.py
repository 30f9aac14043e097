"""A box call in virtual time, compiled: what becomes of its tuples, and how long it takes."""

import numpy as np

from headgate.compiled import compiled
from headgate.simulation.learn import learn
from headgate.simulation.outputs import finish_in_pane, output
from headgate.simulation.pointer import World
from headgate.simulation.queues import (
    append,
    free_entry,
    may_pass,
    new_entry,
    refresh,
    step_over,
)
from headgate.simulation.world import AGGREGATE, JOIN, NONE
from headgate.workloads.luck import chance, mixed

BELOW, ABOVE = 1.0 - 1e-12, 1.0 + 1e-12
"""So that 0.3 s are three times 0.1 s, and 0.55 of 100 tuples are 55, in floats too."""


@compiled
def cost_of(world: World, position: int, number: int) -> float:
    """Gives c of a stage for one tuple."""
    stage = world.stages[position]
    return world.floats[stage.costs + number] if stage.costs >= 0 else stage.cost_s


@compiled
def copies_of(world: World, position: int, number: int, arrived_at_s: float) -> int:
    """Tells how many tuples a stage makes of one: mostly none or one, by luck."""
    stage, settings = world.stages[position], world.settings[0]
    if stage.fates >= 0:
        return int(world.floats[stage.fates + number])
    selectivity = stage.selectivity
    if stage.drift >= 0:
        interval = min(int(arrived_at_s / settings.drift_s), world.drift.shape[1] - 1)
        selectivity = world.drift[stage.drift, interval]
    whole = int(selectivity)
    if selectivity > whole and chance(settings.seed, number, stage.luck) < selectivity - whole:
        whole += 1
    return whole


@compiled
def foresee(world: World, unit: int, number: int, arrived_at_s: float) -> tuple[float, float]:
    """Gives the seconds and the results that a tuple will cost and bring in one call of a unit."""
    queue = world.queues[unit]
    seconds, tuples = 0.0, 1
    for position in range(queue.first_stage, queue.first_stage + queue.stages):
        seconds += tuples * cost_of(world, position, number)
        tuples *= copies_of(world, position, number, arrived_at_s)
        if tuples == 0:
            break
    return seconds, float(tuples)


@compiled
def take(world: World, unit: int, asked: int) -> int:
    """Gives how many tuples a call takes: as asked, within a train's limits (Aurora §4.2)."""
    settings, row, queue = world.settings[0], world.table[unit], world.queues[unit]
    tuples = min(min(asked, settings.train_tuples), row.pending)
    if settings.train_fraction < 1.0:
        tuples = min(tuples, int(np.ceil(settings.train_fraction * row.pending * BELOW)))
    if settings.train_cost_s < np.inf:
        tuples = min(tuples, int(settings.train_cost_s / row.box_cost_s * ABOVE))
    if settings.train_bytes < np.inf and row.bytes_in > 0.0:
        tuples = min(tuples, int(settings.train_bytes / row.bytes_in))
    if settings.train_spread_s < np.inf or queue.merge_end > queue.merge_first:
        latest_s, count, entry = row.head_arrived_at_s + settings.train_spread_s, 0, queue.head
        first = world.streams[queue.stream].first + queue.cursor if queue.stream >= 0 else 0
        while count < tuples:
            if queue.stream >= 0:
                at_s = world.arrivals[first + count]
            else:
                at_s, entry = world.pool[entry].arrived_at_s, world.pool[entry].next
            if at_s > latest_s or not may_pass(world, unit, at_s):
                break
            count += 1
        tuples = count
    return max(tuples, 1)


@compiled
def most_made(world: World, unit: int, tuples: int) -> tuple[int, int, int]:
    """Gives how many entries and results a call can make at the most, and what one tuple of it can
    have on the stack."""
    queue = world.queues[unit]
    first, end = queue.first_stage, queue.first_stage + queue.stages
    if queue.line:
        stage = world.stages[end - 1]
        entries = tuples * (stage.fill_end - stage.fill_first)
        return entries, tuples * (stage.query_end - stage.query_first), 0
    # What a call puts into one side of a join, its later tuples meet on the other. Each round
    # settles at least one join, those further up first.
    for _ in range(queue.stages if queue.meets_itself else 1):
        for position in range(first, end):
            stage = world.stages[position]
            stage.most_in = 1.0 if stage.parent == NONE else world.stages[stage.parent].most_out
            copies = max(1.0, np.ceil(stage.selectivity))
            if stage.kind == JOIN:
                window = world.windows[stage.join]
                copies = float(window.right if stage.side == 0 else window.left)
                for other in range(first, end if queue.meets_itself else first):
                    facing = world.stages[other]
                    if facing.join == stage.join and facing.side != stage.side:
                        copies += tuples * facing.most_in
            stage.most_out = stage.most_in * copies
    entries, results, stacked = 0.0, 0.0, 0.0
    for position in range(first, end):
        stage = world.stages[position]
        entries += stage.most_out * (stage.fill_end - stage.fill_first)
        entries += stage.most_in if stage.kind == JOIN else 0.0
        results += stage.most_out * (stage.query_end - stage.query_first)
        stacked += stage.most_in + stage.most_out
    return int(tuples * entries), int(tuples * results), int(stacked)


@compiled
def start(world: World, worker_number: int, unit: int, tuples: int, decided_s: float) -> None:
    """Gives a call to a worker: its tuples leave the queue one by one, results when they are made.

    What it makes for other queues is delivered when the call ends.
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
    worker.arrived_sum_s = worker.mass = worker.released_bytes = 0.0
    worker.known_s = worker.known_outputs = 0.0
    worker.released = 0
    outputs_before, queued_sum_s = clock.outputs, 0.0
    place = queue.cursor
    for _ in range(tuples):
        if queue.stream >= 0:
            stream = world.streams[queue.stream]
            number, mass = place, 1.0
            arrived_at_s = ideal_at_s = queued_at_s = world.arrivals[stream.first + place]
            _release_source(world, worker_number, queue.stream, place, begun_s)
            place = step_over(world, unit, place + 1)
        else:
            entry = queue.head
            slot = world.pool[entry]
            number, mass = slot.number, slot.mass
            arrived_at_s, ideal_at_s = slot.arrived_at_s, slot.ideal_at_s
            queued_at_s = slot.queued_at_s
            queue.head = slot.next
            if queue.head == NONE:
                queue.tail = NONE
            _release_entry(world, worker_number, entry, begun_s)
        earlier_s = spent_s
        if queue.line:
            spent_s = _run_line(
                world, worker_number, unit, arrived_at_s, ideal_at_s + row.overhead_s, number, mass,
                begun_s, before_s, spent_s,
            )  # fmt: skip
        else:
            spent_s = _run_tree(
                world, worker_number, unit, arrived_at_s, ideal_at_s + row.overhead_s, number, mass,
                begun_s, before_s, spent_s,
            )  # fmt: skip
        worker.arrived_sum_s += arrived_at_s
        worker.mass += mass
        worker.known_s += spent_s - earlier_s
        queued_sum_s += queued_at_s
    seconds = before_s + spent_s
    held_s = tuples * (begun_s + seconds) - queued_sum_s  # they are pending until the call ends
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
    clock.shared_area += worker.released * seconds
    clock.shared_bytes_area += worker.released_bytes * seconds


@compiled
def _release_source(world: World, worker: int, stream: int, number: int, begun_s: float) -> None:
    """Counts one holder of a source tuple less; the last one frees its memory (BZ §2)."""
    place = world.streams[stream].first + number
    world.holders[place] -= 1
    if world.holders[place] == 0:
        _free(world, worker, begun_s - world.arrivals[place], world.streams[stream].bytes)


@compiled
def _release_entry(world: World, worker: int, entry: int, begun_s: float) -> None:
    slot = world.pool[entry]
    owner = slot.owner
    if owner <= -2:
        _release_source(world, worker, slot.target, -2 - owner, begun_s)
        free_entry(world, entry)
        return
    world.pool[owner].holders -= 1
    if world.pool[owner].holders == 0:
        _free(world, worker, begun_s - world.pool[owner].queued_at_s, world.pool[owner].bytes)
        if owner != entry:
            free_entry(world, owner)
        free_entry(world, entry)
    elif owner != entry:
        free_entry(world, entry)


@compiled
def _free(world: World, worker_number: int, held_s: float, size_bytes: float) -> None:
    clock, worker = world.clock[0], world.workers[worker_number]
    clock.shared_area += held_s
    clock.shared_bytes_area += held_s * size_bytes
    worker.released += 1
    worker.released_bytes += size_bytes


@compiled
def drop(world: World, entry: int) -> None:
    """Takes an entry out of memory that no call will ever take: its query has gone."""
    clock, slot = world.clock[0], world.pool[entry]
    owner = slot.owner
    if owner <= -2:
        drop_source(world, slot.target, -2 - owner)
        free_entry(world, entry)
        return
    world.pool[owner].holders -= 1
    if world.pool[owner].holders == 0:
        clock.shared -= 1
        clock.shared_bytes -= world.pool[owner].bytes
        held_s = clock.now_s - world.pool[owner].queued_at_s
        clock.shared_area += held_s
        clock.shared_bytes_area += held_s * world.pool[owner].bytes
        free_entry(world, owner)
    if owner != entry:
        free_entry(world, entry)


@compiled
def drop_source(world: World, stream: int, number: int) -> None:
    """Counts one holder of a source tuple less, outside of any call."""
    clock, place = world.clock[0], world.streams[stream].first + number
    world.holders[place] -= 1
    if world.holders[place] == 0:
        held_s = clock.now_s - world.arrivals[place]
        clock.shared -= 1
        clock.shared_bytes -= world.streams[stream].bytes
        clock.shared_area += held_s
        clock.shared_bytes_area += held_s * world.streams[stream].bytes


@compiled
def _run_line(
    world: World, worker: int, unit: int, arrived_at_s: float, ideal_at_s: float, number: int,
    mass: float, begun_s: float, before_s: float, spent_s: float,
) -> float:  # fmt: skip
    """Runs a tuple through a plain line of boxes; gives the seconds spent in the call so far."""
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
            passes = False
        elif settings.fluid:
            mass *= stage.selectivity
        elif stage.selectivity < 1.0 or stage.drift >= 0 or stage.fates >= 0:
            passes = copies_of(world, position, number, arrived_at_s) > 0
            if settings.learns:
                learn(world, stage.figure, 1.0 if passes else 0.0)
        if not passes:
            if queue.pane_query >= 0:
                left_at_s = begun_s + (spent_s + before_s)
                finish_in_pane(world, queue.pane_query, arrived_at_s, left_at_s)
            return spent_s
    left_at_s = begun_s + (spent_s + before_s)
    _emit(world, worker, last, arrived_at_s, ideal_at_s, number, mass, left_at_s)
    return spent_s


@compiled
def _emit(
    world: World, worker_number: int, position: int, arrived_at_s: float, ideal_at_s: float,
    number: int, mass: float, left_at_s: float,
) -> None:  # fmt: skip
    """Hands what came out of a stage to queries, and to the queues of other units."""
    stage, worker = world.stages[position], world.workers[worker_number]
    for link in range(stage.query_first, stage.query_end):
        output(world, world.links[link], arrived_at_s, ideal_at_s, left_at_s, mass)
    owner = NONE
    for link in range(stage.fill_first, stage.fill_end):
        entry = new_entry(world)
        slot = world.pool[entry]
        slot.arrived_at_s, slot.ideal_at_s = arrived_at_s, ideal_at_s
        slot.number, slot.mass, slot.target = number, mass, world.links[link]
        slot.bytes = stage.bytes_out
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
    mass: float, begun_s: float, before_s: float, spent_s: float,
) -> float:  # fmt: skip
    """Runs a tuple and all that comes of it through a tree of boxes, depth first."""
    queue, settings, clock, stack = (
        world.queues[unit], world.settings[0], world.clock[0], world.stack,
    )  # fmt: skip
    top = 0
    _push(world, top, queue.first_stage, arrived_at_s, ideal_at_s, number, mass)
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
            if queue.pane_query >= 0:
                finish_in_pane(world, queue.pane_query, arrived_at_s, left_at_s)
            continue
        if stage.kind == JOIN:
            top = _match(world, position, top, arrived_at_s, reached_at_s, number, cost_s)
            if settings.learns:
                learn(world, stage.figure, float(top - bottom))
        else:
            copies = 1
            if settings.fluid:
                mass *= stage.selectivity
            else:
                copies = copies_of(world, position, number, arrived_at_s)
                if settings.learns:
                    learn(world, stage.figure, float(copies))
            if copies == 0 and queue.pane_query >= 0:
                finish_in_pane(world, queue.pane_query, arrived_at_s, left_at_s)
            for copy in range(copies):
                own = number if copy == 0 else mixed(number, copy)
                _push(world, top, position, arrived_at_s, reached_at_s + cost_s, own, mass)
                top += 1
        # What came out stands on the stack, in order; each is handed on, and goes on to the
        # children in place of the entry, the last first, so that the first is on top.
        made = top - bottom
        for place in range(bottom, top):
            out = stack[place]
            _emit(
                world, worker, position, out.arrived_at_s, out.ideal_at_s, out.number, out.mass,
                left_at_s,
            )  # fmt: skip
        top = _descend(world, position, bottom, made)
    return spent_s


@compiled
def _push(
    world: World, top: int, position: int, arrived_at_s: float, ideal_at_s: float, number: int,
    mass: float,
) -> None:  # fmt: skip
    item = world.stack[top]
    item.target, item.number, item.mass = position, number, mass
    item.arrived_at_s, item.ideal_at_s = arrived_at_s, ideal_at_s


@compiled
def _descend(world: World, position: int, bottom: int, made: int) -> int:
    """Replaces what a stage made by its entries at the children; gives the top of the stack."""
    stack = world.stack
    children, child = 0, world.stages[position].child
    while child != NONE:
        children += 1
        child = world.stages[child].sibling
    if children == 0:
        return bottom
    # Spread from the end, so that nothing is overwritten before it is read: item k of the stage
    # becomes entries of the mirrored block (made − 1 − k), its first child on top.
    spare = bottom + made * children
    for k in range(made):
        out = stack[bottom + k]
        _push(world, spare + k, 0, out.arrived_at_s, out.ideal_at_s, out.number, out.mass)
    for k in range(made):
        block = bottom + (made - 1 - k) * children
        child, offset = world.stages[position].child, children - 1
        while child != NONE:
            out = stack[spare + k]
            _push(
                world, block + offset, child, out.arrived_at_s, out.ideal_at_s, out.number, out.mass
            )
            offset -= 1
            child = world.stages[child].sibling
    return spare


@compiled
def _match(
    world: World, position: int, top: int, arrived_at_s: float, reached_at_s: float, number: int,
    cost_s: float,
) -> int:  # fmt: skip
    """Inserts a tuple on its side of a window join and puts its matches on the stack.

    Symmetric hash join (Sharaf §2.2.1): pairs at most V apart, both ends included. Tuples of the
    other side that are older than that are pruned, if this side goes on in order. What comes from
    another join does not, since a composite arrives with the later of its two.
    """
    stage, seed = world.stages[position], world.settings[0].seed
    window, pool = world.windows[stage.join], world.pool
    left = stage.side == 0
    in_order = window.left_in_order if left else window.right_in_order
    other_in_order = window.right_in_order if left else window.left_in_order
    entry = new_entry(world)
    slot = pool[entry]
    slot.arrived_at_s, slot.ideal_at_s, slot.number = arrived_at_s, reached_at_s, number
    if left:
        if window.left_tail == NONE:
            window.left_head = entry
        else:
            pool[window.left_tail].next = entry
        window.left_tail = entry
        window.left += 1
    else:
        if window.right_tail == NONE:
            window.right_head = entry
        else:
            pool[window.right_tail].next = entry
        window.right_tail = entry
        window.right += 1
    other = window.right_head if left else window.left_head
    while in_order and other != NONE and pool[other].arrived_at_s < arrived_at_s - window.window_s:
        old, other = other, pool[other].next
        free_entry(world, old)
        if left:
            window.right -= 1
        else:
            window.left -= 1
    if left:
        window.right_head = other
        if other == NONE:
            window.right_tail = NONE
    else:
        window.left_head = other
        if other == NONE:
            window.left_tail = NONE
    while other != NONE:
        found = pool[other]
        if other_in_order and found.arrived_at_s > arrived_at_s + window.window_s:
            break
        pair = mixed(number, found.number) if left else mixed(found.number, number)
        near = found.arrived_at_s <= arrived_at_s + window.window_s
        near = near and found.arrived_at_s >= arrived_at_s - window.window_s
        if near and chance(seed, pair, stage.luck) < stage.selectivity:
            if found.arrived_at_s <= arrived_at_s:
                ready_s = max(found.ideal_at_s + cost_s, arrived_at_s)
                ideal_at_s = ready_s + (reached_at_s - arrived_at_s) + cost_s
            else:
                ready_s = max(reached_at_s + cost_s, found.arrived_at_s)
                ideal_at_s = ready_s + (found.ideal_at_s - found.arrived_at_s) + cost_s
            together_s = max(arrived_at_s, found.arrived_at_s)
            _push(world, top, position, together_s, ideal_at_s, pair, 1.0)
            top += 1
        other = found.next
    return top


@compiled
def forget(world: World) -> None:
    """Prunes windows by the oldest tuple that is anywhere: no composite arrives before it."""
    clock, pool = world.clock[0], world.pool
    oldest_s = clock.now_s
    for unit in range(len(world.queues)):
        queue = world.queues[unit]
        oldest_s = min(oldest_s, _oldest(world, queue.head))
        if queue.stream >= 0 and queue.cursor < world.streams[queue.stream].arrived:
            first = world.streams[queue.stream].first
            oldest_s = min(oldest_s, world.arrivals[first + queue.cursor])
    for number in range(len(world.workers)):
        if world.workers[number].unit != NONE:
            oldest_s = min(oldest_s, _oldest(world, world.workers[number].head))
    for number in range(len(world.windows)):
        window = world.windows[number]
        for left in (True, False):
            entry = window.left_head if left else window.right_head
            head, tail, count = NONE, NONE, 0
            while entry != NONE:
                following = pool[entry].next
                if pool[entry].arrived_at_s < oldest_s - window.window_s:
                    free_entry(world, entry)
                else:
                    if tail == NONE:
                        head = entry
                    else:
                        pool[tail].next = entry
                    tail, count = entry, count + 1
                    pool[entry].next = NONE
                entry = following
            if left:
                window.left_head, window.left_tail, window.left = head, tail, count
            else:
                window.right_head, window.right_tail, window.right = head, tail, count
    clock.forget_at = max(1024, 2 * clock.entries)


@compiled
def _oldest(world: World, entry: int) -> float:
    """Gives the earliest arrival in a list of entries."""
    oldest_s = np.inf
    while entry != NONE:
        oldest_s = min(oldest_s, world.pool[entry].arrived_at_s)
        entry = world.pool[entry].next
    return oldest_s


@compiled
def deliver(world: World, worker_number: int) -> None:
    """Ends a call: its tuples are gone from the queue, what it made is in the queues of others."""
    clock, worker = world.clock[0], world.workers[worker_number]
    unit, tuples = worker.unit, worker.tuples
    queue, row = world.queues[unit], world.table[unit]
    queue.running = False
    row.pending -= tuples
    row.amount -= worker.mass
    queue.arrived_sum_s -= worker.arrived_sum_s
    clock.pending -= tuples
    clock.bytes -= tuples * row.bytes_in
    clock.shared -= worker.released
    clock.shared_bytes -= worker.released_bytes
    world.class_pending[row.query_class] -= tuples
    if world.settings[0].foresight:
        row.pending_s -= worker.known_s
        row.pending_outputs -= worker.known_outputs
    if queue.pane_query >= 0:
        row.due = max(0, row.due - tuples)
    worker.unit = NONE
    worker.ended_at_s, worker.ends_at_s = worker.ends_at_s, np.inf
    entry = worker.head
    while entry != NONE:
        slot, following = world.pool[entry], world.pool[entry].next
        slot.queued_at_s = clock.now_s
        if slot.owner == entry:
            clock.shared += 1
            clock.shared_max = max(clock.shared_max, clock.shared)
            clock.shared_bytes += slot.bytes
        target = slot.target
        if world.queues[target].active:
            append(world, target, entry)
            refresh(world, target)
        else:
            drop(world, entry)
        entry = following
    refresh(world, unit)
