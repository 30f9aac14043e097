"""How many tuples a call takes, and the room that its output may need, compiled."""

import numpy as np

from headgate.compiled import compiled
from headgate.simulation.kernel.queues import may_pass
from headgate.simulation.world.pointer import World
from headgate.simulation.world.records import JOIN, NONE

BELOW, ABOVE = 1.0 - 1e-12, 1.0 + 1e-12
"""Corrections for rounding: 0.3 s must be three times 0.1 s, and 0.55 of 100 tuples must be 55."""


@compiled
def take(world: World, unit: int, step_tuples: int) -> int:
    """Return how many tuples a call takes: those of the step, within limits (Aurora §4.2)."""
    settings, row, queue = world.settings[0], world.table[unit], world.queues[unit]
    tuples = min(min(step_tuples, settings.train_tuples), row.pending)
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
def room_needed(world: World, unit: int, tuples: int) -> tuple[int, int, int]:
    """Return upper bounds: entries of a call, its results, and stack entries of one tuple."""
    queue = world.queues[unit]
    first, end = queue.first_stage, queue.first_stage + queue.stages
    if queue.line:
        stage = world.stages[end - 1]
        entries = tuples * (stage.fill_end - stage.fill_first)
        return entries, tuples * (stage.query_end - stage.query_first), 0
    # If one call runs both sides of a join, its later tuples match its earlier ones. Each round
    # settles at least one join, the upstream joins first.
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
