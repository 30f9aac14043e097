"""The columns of the unit table that change with the queues."""

import numpy as np

from headgate.model.arrays import Floats, Ints
from headgate.model.network.network import Network
from headgate.model.network.unit_table import UnitTable
from headgate.scheduler.queues import StreamBuffer

MICROSECONDS = 1e6


class QueueColumns:
    """Pending tuples, arrivals, deadlines and costs of units.

    The deadline is the end of the window of the oldest tuple (Sharaf §3.5). A unit without windows
    by time has its query's deadline, which counts from the oldest arrival, and all of its tuples
    are due. A window by event time ends on the arrival clock here, as if tuples arrived at once:
    what has not arrived cannot be scheduled.
    """

    def __init__(self, network: Network) -> None:
        windows = [path.kind.closes for path in network.paths]
        slides = [0 if window is None else window.slide or window.size for window in windows]
        self._slide_s = np.array(slides, dtype=np.float64) / MICROSECONDS
        offsets = [0 if window is None else window.offset for window in windows]
        self._offset_s = np.array(offsets, dtype=np.float64) / MICROSECONDS
        self._any = bool((self._slide_s > 0).any())

    def update(
        self,
        table: UnitTable,
        units: Ints,
        cursors: Ints,
        buffer: StreamBuffer,
        idle: "np.typing.NDArray[np.bool_]",
        train_tuples: int,
    ) -> None:
        """Update the rows of units that read one stream.

        The cost is that of the call that would run: C̄(n) = o / n + c̄, so that a priority ranks by
        what n pending tuples really cost.
        """
        pending, heads_s = buffer.pending(cursors), buffer.head_arrived_at_s(cursors)
        table["pending"][units] = table["amount"][units] = pending
        table["ready"][units] = idle & (pending > 0)
        table["head_arrived_at_s"][units] = heads_s
        table["mean_arrived_at_s"][units] = buffer.mean_arrived_at_s(cursors)
        tuples = np.clip(pending, 1, train_tuples)
        table["cost_s"][units] = table["overhead_s"][units] / tuples + table["tuple_cost_s"][units]
        deadlines_s = heads_s + table["deadline_s"][units]
        due = pending
        if self._any:
            slide_s, offset_s = self._slide_s[units], self._offset_s[units]
            closes = (slide_s > 0) & np.isfinite(heads_s)
            ends_s = _end_of(heads_s[closes], slide_s[closes], offset_s[closes])
            deadlines_s[closes] = ends_s
            due = pending.copy()
            due[closes] = buffer.arrived_before(cursors[closes], ends_s)
        table["deadline_at_s"][units] = deadlines_s
        table["due"][units] = due


def _end_of(heads_s: Floats, slide_s: Floats, offset_s: Floats) -> Floats:
    """Return the first end of a window after each arrival."""
    ends_s: Floats = (np.floor((heads_s - offset_s) / slide_s) + 1.0) * slide_s + offset_s
    return ends_s
