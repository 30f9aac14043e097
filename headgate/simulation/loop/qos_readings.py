"""What the queries of a simulation deliver, for the same QoS monitor as in a run."""

import numpy as np

from headgate.model.network.units import Units
from headgate.scheduler.overload import BUSY
from headgate.scheduler.qos_monitor import Judgement, QoSMonitor
from headgate.simulation.world.pointer import World


class QoSReadings:
    """Reads the results of a simulation for the QoS monitor: mean responses and QoS graphs.

    A simulation does not count the results that keep a deadline, so deadlines are not judged.
    """

    def __init__(self, units: Units, world: World) -> None:
        self._network = units.network
        self._unit_by_path = [
            next(shape.number for shape in units.shapes if path in shape.queries)
            for path in range(len(units.network.paths))
        ]
        self._delivery = QoSMonitor(units.network, world.table[self._unit_by_path])
        self._before = np.zeros((4, len(self._unit_by_path)))
        self._busy_s = 0.0

    def judge(self, world: World, now_s: float, period_s: float) -> Judgement:
        """Return what is delivered below what was asked; nothing if the workers were hardly busy.

        Args:
            period_s: the seconds since the last time.
        """
        rows = world.results
        sums = np.array([rows[name] for name in COUNTED], dtype=np.float64)
        self._delivery.change(self._network, world.table[self._unit_by_path])
        self._delivery.add(now_s, sums - self._before)
        self._before = sums
        total_s = float(world.clock["busy_s"][0])
        busy_s, self._busy_s = total_s - self._busy_s, total_s
        busy = busy_s >= BUSY * period_s * len(world.workers)
        return self._delivery.judge(now_s) if busy else Judgement()


COUNTED = ("outputs", "response_sum", "outputs", "qos_sum")
"""Columns of the results in the order in which the monitor adds them up; all count as in time."""
