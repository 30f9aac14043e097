"""The QoS that a simulation has delivered, by the same rule as that of a run (Aurora §2.1)."""

import numpy as np

from headgate.metrics.utility import latency_graph, utility_of_shed
from headgate.model.arrays import Floats
from headgate.model.network.units import Units
from headgate.simulation.kernel.queues import sheds
from headgate.simulation.world.pointer import World
from headgate.simulation.world.records import NONE


def delivered_qos(world: World, units: Units) -> Floats:
    """Return, by query, the utility of the results that were due and their number, times weight.

    Those of tuples that were shed count by the loss graph, those of tuples that wait count S each,
    at their present age. A shared unit counts for its first query. A query without a graph has 0.
    """
    paths, rows = units.network.paths, world.results
    qos = np.zeros((2, len(paths)))
    for number, path in enumerate(paths):
        outputs = float(rows["outputs"][number])
        if latency_graph(path) is not None:
            worth = outputs if path.query.qos is None else float(rows["qos_sum"][number])
            qos[:, number] = worth, outputs
    for shape in units.shapes:
        path, unit = paths[shape.query], shape.number
        graph, queue = latency_graph(path), world.queues[unit]
        if graph is None:
            continue
        selectivity, shed = float(world.table["selectivity"][unit]), int(queue["shed"])
        if shed:
            due = selectivity * shed
            fraction = shed / (shed + int(queue["tuples_in"]))
            qos[:, shape.query] += due * utility_of_shed(path.query.loss, fraction), due
        if world.table["pending"][unit]:
            ages_s = float(world.clock["now_s"][0]) - _arrivals_s(world, unit)
            worth = selectivity * float(np.interp(ages_s, *graph).sum())
            qos[:, shape.query] += worth, selectivity * len(ages_s)
    return qos * np.array([path.query.weight for path in paths])


def _arrivals_s(world: World, unit: int) -> Floats:
    """Return when the tuples arrived that wait at a unit, with those of the call under way."""
    queue, pending = world.queues[unit], int(world.table["pending"][unit])
    waits_s: list[float] = []
    if queue["stream"] >= 0:
        stream = world.streams[queue["stream"]]
        arrivals_s = world.arrivals[int(stream["first"]) :]
        may_shed = world.settings["shed_s"][0] > 0
        for place in range(int(stream["arrived"]) - 1, -1, -1):
            if len(waits_s) == pending:
                break
            if not (may_shed and sheds(world, unit, place, arrivals_s[place])):
                waits_s.append(float(arrivals_s[place]))
        return np.array(waits_s)
    entry = int(queue["head"])
    while entry != NONE:
        waits_s.append(float(world.pool["arrived_at_s"][entry]))
        entry = int(world.pool["next"][entry])
    for worker in world.workers[world.workers["unit"] == unit] if queue["running"] else ():
        mean_s = float(worker["arrived_sum_s"]) / max(1, int(worker["tuples"]))
        waits_s += [mean_s] * int(worker["tuples"])
    return np.array(waits_s)
