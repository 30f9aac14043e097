"""Selectivities and costs measured during a simulation, compiled (Sharaf §3.3.3)."""

import numpy as np

from headgate.compiled import compiled
from headgate.simulation.kernel.queues import touch
from headgate.simulation.world.pointer import World
from headgate.simulation.world.records import JOIN, NONE


@compiled
def learn(world: World, position: int, tuples_out: float, cost_s: float) -> None:
    """Count one input tuple of a stage, and update its estimates at the end of a window.

    S_new = (1 − α) S_old + α N_out / N_in, with one more tuple that passes and one that does not,
    so that a box that let nothing pass is still tried again. c̄ moves by α toward the mean of the
    window. A stage whose outcome and cost are certain is not measured.
    """
    settings, figure, stage = world.settings[0], world.figures[position], world.stages[position]
    fixed = stage.kind != JOIN and stage.drift < 0 and stage.fates < 0 and stage.costs < 0
    if fixed and stage.selectivity == 1.0 and figure.selectivity == 1.0:
        return
    figure.tuples_in += 1
    figure.tuples_out += tuples_out
    figure.more_s += cost_s - figure.cost_s
    if figure.tuples_in < settings.window_tuples:
        return
    seen = (figure.tuples_out + 1.0) / (figure.tuples_in + 2.0)
    figure.selectivity = (1.0 - settings.smoothing) * figure.selectivity + settings.smoothing * seen
    figure.cost_s += settings.smoothing * figure.more_s / figure.tuples_in
    figure.tuples_in, figure.tuples_out, figure.more_s = 0, 0.0, 0.0
    figure.fresh = True
    world.clock[0].figures += 1


@compiled
def update_units(world: World, unit: int) -> None:
    """Update all units whose course contains a stage that this unit's call has measured."""
    queue = world.queues[unit]
    for position in range(queue.first_stage, queue.first_stage + queue.stages):
        figure = world.figures[position]
        if figure.fresh:
            for link in range(figure.unit_first, figure.unit_end):
                world.queues[world.links[link]].stale = True
    for position in range(queue.first_stage, queue.first_stage + queue.stages):
        figure = world.figures[position]
        if figure.fresh:
            figure.fresh = False
            for link in range(figure.unit_first, figure.unit_end):
                concerned = world.links[link]
                if world.queues[concerned].stale:
                    world.queues[concerned].stale = False
                    follow(world, concerned)


@compiled
def follow(world: World, unit: int) -> None:
    """Recompute S, C̄ and T of a unit's course, and s and c̄ of the boxes that one call runs."""
    queue, row = world.queues[unit], world.table[unit]
    reach = np.empty(max(queue.course_end - queue.course_first, queue.stages))
    selectivity, cost_s, weighted, ways, node = 0.0, 0.0, 0.0, 0, 0
    link = queue.course_first
    while link < queue.course_end:
        figure, parent, queries = (
            world.figures[world.links[link]], world.links[link + 1], world.links[link + 2],
        )  # fmt: skip
        coming = 1.0 if parent == NONE else reach[parent]
        cost_s += coming * figure.cost_s
        reach[node] = coming * figure.selectivity
        for place in range(link + 3, link + 3 + queries):
            selectivity += reach[node]
            weighted += reach[node] / world.results[world.links[place]].ideal_s
            ways += 1
        node += 1
        link += 3 + queries
    row.selectivity, row.tuple_cost_s = selectivity, cost_s
    if ways > 1 and weighted > 0.0:
        row.ideal_s = selectivity / weighted
    row.box_selectivity = row.box_cost_s = 0.0
    for place in range(queue.stages):
        position = queue.first_stage + place
        stage, figure = world.stages[position], world.figures[position]
        coming = 1.0 if stage.parent == NONE else reach[stage.parent - queue.first_stage]
        row.box_cost_s += coming * figure.cost_s
        reach[place] = coming * figure.selectivity
        if stage.query_end > stage.query_first or stage.fill_end > stage.fill_first:
            row.box_selectivity += reach[place]
    tuples = min(max(row.pending, 1), world.settings[0].train_tuples)
    row.cost_s = row.overhead_s / tuples + cost_s
    touch(world, unit)
