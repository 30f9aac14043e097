"""Selectivities measured while a simulation runs, compiled (Sharaf §3.3.3)."""

from headgate.compiled import compiled
from headgate.simulation.pointer import World
from headgate.simulation.queues import touch


@compiled
def learn(world: World, figure_number: int, tuples_out: float) -> None:
    """Counts one input tuple of a box; at the end of a window its selectivity is measured anew.

    S_new = (1 − α) S_old + α N_out / N_in, with one tuple more in each so that a box that let
    nothing pass is still tried again.
    """
    settings, figure = world.settings[0], world.figures[figure_number]
    figure.tuples_in += 1
    figure.tuples_out += tuples_out
    if figure.tuples_in < settings.window_tuples:
        return
    seen = (figure.tuples_out + 1.0) / (figure.tuples_in + 2.0)
    figure.selectivity = (1.0 - settings.smoothing) * figure.selectivity + settings.smoothing * seen
    figure.tuples_in, figure.tuples_out = 0, 0.0
    world.clock[0].figures += 1
    for link in range(figure.unit_first, figure.unit_end):
        _follow(world, world.links[link])


@compiled
def _follow(world: World, unit: int) -> None:
    """Computes S and C̄ of a unit's way to the output anew."""
    queue, row = world.queues[unit], world.table[unit]
    reach, cost_s = 1.0, 0.0
    for link in range(queue.first_figure, queue.first_figure + queue.figures):
        figure = world.figures[world.links[link]]
        cost_s += reach * figure.cost_s
        reach *= figure.selectivity
    whole = row.box_cost_s == row.tuple_cost_s
    row.selectivity, row.tuple_cost_s = reach, cost_s
    row.box_selectivity = (
        reach if whole else world.figures[world.links[queue.first_figure]].selectivity
    )
    if whole:
        row.box_cost_s = cost_s
    taken = min(max(row.pending, 1), world.settings[0].train_tuples)
    row.cost_s = row.overhead_s / taken + cost_s
    touch(world, unit)
