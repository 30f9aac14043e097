"""The loop for plain worlds, compiled: one worker runs lines of selections that read streams.

The testbeds of queries over one stream are plain, and a plain world needs only a small part of the
general loop. Here that part is one compiled function; a property test checks that its results equal
those of the general loop to the bit.
"""

from typing import Any

import numpy as np

from headgate.compiled import borrowing, from_zero, inlined
from headgate.simulation.kernel.outputs import output
from headgate.simulation.kernel.samples import note
from headgate.simulation.world.pointer import World
from headgate.simulation.world.records import NONE, SELECT
from headgate.simulation.world.world import DONE, GROW, MORE, UNTIL
from headgate.workloads.random_hash import draw

MOST_LEAVING = 64
"""Results that wait on the stack to be counted; plain lines do not use the stack otherwise."""

changed: Any = None
pick: Any = None
"""The functions of a policy's selection, which `with_functions` puts in their place in `run`."""


def is_plain(world: World) -> bool:
    """Return True if the plain loop can run a world."""
    settings, queues, stages = world.settings[0], world.queues, world.stages
    more = any(settings[key] for key in ("fluid", "foresight", "learns", "shed_s"))
    more = more or settings["merge_end"] > settings["merge_first"]
    limits = ("train_cost_s", "train_bytes", "train_spread_s")
    limited = settings["train_fraction"] < 1.0 or any(settings[key] < np.inf for key in limits)
    lines = queues["line"] & (queues["stream"] >= 0) & (queues["slide_s"] == 0.0)
    special = [stages[key] != NONE for key in ("drift", "costs", "fates")]
    boxes = (stages["kind"] == SELECT) & (stages["fill_first"] == stages["fill_end"])
    simple = bool(lines.all() and boxes.all() and not np.any(special))
    return simple and not more and not limited and len(world.workers) == 1


def run(world: World, memory: Any, until_s: float, most_decisions: int) -> int:
    """Run a plain world, with the same results as the general loop in `compiled_loop`.

    This is a template: `with_functions` compiles it for the `changed` and the `pick` of a policy.
    """
    clock, settings, worker = world.clock[0], world.settings[0], world.workers[0]
    table, queues, touched = world.table, world.queues, world.changed
    decisions, noted_until_s = 0, -np.inf
    next_at_s = _next_arrival_s(world)
    unit, step_tuples, decided_s = clock.chosen, clock.chosen_tuples, clock.chosen_s
    while True:
        now_s = clock.now_s
        if unit < 0:
            passed_s = now_s - clock.met_at_s
            clock.pending_area += clock.pending * passed_s
            clock.shared_area += clock.shared * passed_s
            clock.met_at_s = now_s
            if next_at_s <= now_s:
                _admit(world)
                next_at_s = _next_arrival_s(world)
            ended = NONE
            if worker.ends_at_s <= now_s:
                ended = from_zero(worker.unit)
                _deliver(world)
            if now_s >= noted_until_s:
                noted_until_s = note(world)
            if worker.unit < 0:
                alone = ended >= 0 and not queues[ended].touched
                for place in range(clock.changed):
                    other = from_zero(touched[place])
                    queues[other].touched = False
                    changed(memory, table, other, now_s)
                clock.changed = 0
                if alone:
                    changed(memory, table, ended, now_s)
                unit, step_tuples, examined = pick(memory, table, now_s)
                if unit >= 0:
                    clock.decisions += 1
                    clock.examined += examined
                    decided_s = settings.decision_s + examined * settings.examine_s
                    decided_s += (examined - 1) * settings.visit_s
        if unit >= 0:
            if not _begin(world, unit, step_tuples, decided_s):
                clock.chosen, clock.chosen_tuples, clock.chosen_s = unit, step_tuples, decided_s
                why = GROW
                break
            changed(memory, table, unit, now_s)
            decisions += 1
            unit = clock.chosen = NONE
        next_s = min(worker.ends_at_s, np.inf if worker.unit >= 0 else next_at_s)
        if next_s == np.inf:
            why = DONE
            break
        if next_s >= until_s:
            clock.now_s = max(now_s, until_s)
            why = UNTIL
            break
        clock.now_s = max(now_s, next_s)
        if decisions >= most_decisions:
            why = MORE
            break
    _count_results(world)
    return why


@inlined
def _next_arrival_s(world: World) -> float:
    place = world.clock[0].next_arrival
    return world.order_at_s[place] if place < len(world.order_at_s) else np.inf


@inlined
def _begin(world: World, unit: int, step_tuples: int, decided_s: float) -> bool:
    """Start a call. If there is no room for its responses, change nothing and return False."""
    clock, settings, worker = world.clock[0], world.settings[0], world.workers[0]
    queue, row, stages = world.queues[unit], world.table[unit], world.stages
    tuples = max(min(min(step_tuples, settings.train_tuples), row.pending), 1)
    first = from_zero(queue.first_stage)
    end = first + from_zero(queue.stages)
    if settings.keep:
        most = (
            clock.kept
            + clock.leaving
            + tuples * (stages[end - 1].query_end - stages[end - 1].query_first)
        )
        if 3 * most > len(world.kept):
            return False
    overhead_s, switch_s = row.overhead_s, 0.0
    if unit != clock.last:
        switch_s = settings.switch_s * len(world.table)
    before_s = decided_s + settings.storage_s + (overhead_s + switch_s)
    now_s, seed = clock.now_s, settings.seed
    source, cursor = from_zero(queue.source), from_zero(queue.cursor)
    spent_s = arrived_sum_s = done_sum_s = 0.0
    for number in range(cursor, cursor + tuples):
        arrived_at_s = world.arrivals[source + number]
        ideal_at_s, position, passes = arrived_at_s + overhead_s, first, True
        while passes and position < end:
            stage = stages[position]
            spent_s += stage.cost_s
            ideal_at_s += stage.cost_s
            position += 1
            if stage.selectivity < 1.0:
                passes = draw(seed, number, stage.random_key) < stage.below
        clock.box_calls += position - first
        if passes:
            left_at_s = now_s + (spent_s + before_s)
            stage = stages[from_zero(end - 1)]
            for link in range(from_zero(stage.query_first), stage.query_end):
                if clock.leaving == MOST_LEAVING:
                    _count_results(world)
                leaves = world.stack[from_zero(clock.leaving)]
                leaves.target, leaves.arrived_at_s = world.links[link], arrived_at_s
                leaves.ideal_at_s, leaves.queued_at_s = ideal_at_s, left_at_s
                clock.leaving += 1
        world.left_s[from_zero(source + number)] = now_s + (spent_s + before_s)
        done_sum_s += spent_s
        arrived_sum_s += arrived_at_s
    seconds = before_s + spent_s
    early_s = tuples * spent_s - done_sum_s
    held_s = tuples * (now_s + seconds) - arrived_sum_s - early_s
    row.ready = False
    queue.running = True
    queue.cursor = cursor + tuples
    queue.tuples_in += tuples
    queue.pending_area += held_s
    queue.busy_s += seconds
    worker.unit, worker.call, worker.tuples = unit, clock.calls, tuples
    worker.taken, worker.ends_at_s = cursor, now_s + seconds
    worker.arrived_sum_s, worker.mass = arrived_sum_s, float(tuples)
    clock.last = unit
    clock.calls += 1
    clock.pending_area -= early_s
    clock.bytes_area += held_s * row.bytes_in
    clock.busy_s += seconds
    if before_s > 0.0:
        clock.overhead_s += overhead_s + switch_s
        clock.storage_s += settings.storage_s
        clock.scheduler_s += decided_s
    return True


@borrowing
def _count_results(world: World) -> None:
    """Count the results on the stack.

    The bins of hundreds of queries are in no cache. When results are counted in a row, their waits
    for memory overlap.
    """
    for place in range(world.clock[0].leaving):
        item = world.stack[place]
        output(world, item.target, item.arrived_at_s, item.ideal_at_s, item.queued_at_s, 1.0)
    world.clock[0].leaving = 0


@borrowing
def _admit(world: World) -> None:
    """Admit every tuple that has arrived by now."""
    clock, train_tuples = world.clock[0], world.settings[0].train_tuples
    table, queues, links, places = world.table, world.queues, world.links, world.changed
    classes = world.class_pending
    now_s, next_arrival, touched = clock.now_s, clock.next_arrival, clock.changed
    pending, pending_max = clock.pending, clock.pending_max
    held_bytes, bytes_max = clock.bytes, clock.bytes_max
    while next_arrival < len(world.order) and world.order_at_s[next_arrival] <= now_s:
        at_s, stream = world.order_at_s[next_arrival], world.streams[world.order[next_arrival]]
        number, holders = stream.arrived, 0
        stream.arrived += 1
        next_arrival += 1
        for link in range(from_zero(stream.reader_first), stream.reader_end):
            unit = from_zero(links[link])
            queue, row = queues[unit], table[unit]
            if not queue.active:
                if queue.cursor == number:  # a running call has taken all tuples before it
                    queue.cursor = number + 1
                continue
            holders += 1
            count = row.pending + 1
            if count == 1:
                queue.cursor = number
                row.head_arrived_at_s, row.deadline_at_s = at_s, at_s + row.deadline_s
            row.pending, row.amount = count, float(count)
            queue.arrived_sum_s += at_s
            queue.pending_max = max(queue.pending_max, count)
            if not queue.running:
                row.ready, row.due = True, count
                row.mean_arrived_at_s = queue.arrived_sum_s / count
                if row.overhead_s > 0.0 and count <= train_tuples:
                    row.cost_s = row.overhead_s / count + row.tuple_cost_s
            held_bytes += row.bytes_in
            classes[from_zero(row.query_class)] += 1
            if not queue.touched:
                queue.touched = True
                places[from_zero(touched)] = unit
                touched += 1
        pending += holders
        pending_max, bytes_max = max(pending_max, pending), max(bytes_max, held_bytes)
        clock.pending_area += holders * (now_s - at_s)
        world.holders[stream.first + number] = holders
        if holders > 0:
            clock.shared_area += now_s - at_s
            clock.shared += 1
            clock.shared_max = max(clock.shared_max, clock.shared)
    clock.next_arrival, clock.changed = next_arrival, touched
    clock.pending, clock.pending_max = pending, pending_max
    clock.bytes, clock.bytes_max = held_bytes, bytes_max


@inlined
def _deliver(world: World) -> None:
    """End the call and remove its tuples from the queue."""
    clock, worker = world.clock[0], world.workers[0]
    unit, tuples = from_zero(worker.unit), worker.tuples
    queue, row = world.queues[unit], world.table[unit]
    source = from_zero(queue.source)
    first = from_zero(source + worker.taken)
    for place in range(first, first + tuples):
        left = world.holders[place] - 1
        world.holders[place] = left
        if left == 0:
            clock.shared -= 1
            clock.shared_area -= clock.now_s - world.left_s[place]
    clock.pending -= tuples
    clock.bytes -= tuples * row.bytes_in
    world.class_pending[from_zero(row.query_class)] -= tuples
    worker.unit, worker.ended_at_s, worker.ends_at_s = NONE, worker.ends_at_s, np.inf
    queue.running = False
    count = row.pending - tuples
    row.pending, row.amount, row.due = count, float(count), count
    if count > 0:
        queue.arrived_sum_s -= worker.arrived_sum_s
        head_s = world.arrivals[from_zero(source + queue.cursor)]
        row.head_arrived_at_s, row.deadline_at_s = head_s, head_s + row.deadline_s
        row.mean_arrived_at_s = queue.arrived_sum_s / count
        row.ready = queue.active
    else:
        queue.arrived_sum_s = 0.0
        row.head_arrived_at_s = row.mean_arrived_at_s = row.deadline_at_s = np.inf
    if row.overhead_s > 0.0:
        train_tuples = max(1, min(count, world.settings[0].train_tuples))
        row.cost_s = row.overhead_s / train_tuples + row.tuple_cost_s
