"""The monitor of AMoS: the metrics of a run since the last measurement (AMoS §3.3)."""

from math import nan

import numpy as np

from headgate.metrics.stale_time import StaleTime
from headgate.metrics.with_waiting import with_waiting
from headgate.model.arrays import Bools, Floats, Ints
from headgate.model.events import Event, Measured, StepFinished, TrainArrived
from headgate.model.network.network import Network
from headgate.model.network.unit_table import UnitTable


class AmosMonitor:
    """The metrics of a performance specification, computed from arrivals and finished calls.

    A metric without a value in an interval, such as the tardiness where no window closed, is NaN.

    Args:
        table: the unit table of the scheduler, from which queue sizes are read. A sum of arrivals
            and calls would miss what waited before, what failed, and what retention has dropped.
        active: by unit, whether it runs; None if all do. No policy can run what waits for others.
    """

    def __init__(self, network: Network, table: UnitTable, active: Bools | None = None) -> None:
        self._table = table
        self._active = np.ones(len(table), dtype=np.bool_) if active is None else active
        self._graphs = [path.query.qos for path in network.paths]
        self._at_s: float | None = None
        self._looked_at_s = 0.0
        self._arrived = 0
        self._tuple_bytes = np.zeros(len(network.streams))
        self._stale = [StaleTime() for _ in network.paths]
        self._stale_before_s = 0.0
        self._forget()

    def hear(self, event: Event) -> None:
        """Add one event to the metrics, before the table has it."""
        self._pass(event.at_s)
        if isinstance(event, TrainArrived):
            self._arrived += int(event.tuples.sum())
            self._tuple_bytes[event.stream] = event.tuple_bytes
        elif isinstance(event, StepFinished):
            for place, unit in enumerate(event.call.units):
                # Without idle waiting, which no policy can change and a replay does not have.
                self._count(unit, event.scheduled_s(place), event.at_s)
            self._tardiness += event.tardiness_s

    def measured(self, at_s: float) -> Measured:
        """Return the metrics since the last measurement, and start a new one."""
        self._pass(at_s)
        seconds = at_s - self._looked_at_s
        responses_s = np.concatenate(self._responses) if self._responses else np.zeros(0)
        slowdowns = np.concatenate(self._slowdowns) if self._slowdowns else np.zeros(0)
        tardiness_s = np.concatenate(self._tardiness) if self._tardiness else np.zeros(0)
        stale_s = sum(stale.seconds for stale in self._stale)
        any_output = len(responses_s) > 0
        values = {
            "mean_response_s": float(responses_s.mean()) if any_output else nan,
            "max_response_s": float(responses_s.max()) if any_output else nan,
            "p95_response_s": float(np.quantile(responses_s, 0.95)) if any_output else nan,
            "norm_response_s": float(np.sqrt(responses_s @ responses_s)),
            "mean_slowdown": float(slowdowns.mean()) if any_output else nan,
            "max_slowdown": float(slowdowns.max()) if any_output else nan,
            "norm_slowdown": float(np.sqrt(slowdowns @ slowdowns)),
            "output_per_s": len(responses_s) / seconds if seconds > 0 else nan,
            "pending": self._area / seconds if seconds > 0 else nan,
            "pending_bytes": self._bytes_area / seconds if seconds > 0 else nan,
            "qos": self._worth / self._judged if self._judged else nan,
            "staleness": (stale_s - self._stale_before_s) / (seconds * len(self._stale) or nan),
            "tardiness_s": float(tardiness_s.mean()) if len(tardiness_s) else nan,
        }
        self._stale_before_s = stale_s
        self._looked_at_s = at_s
        self._forget()
        full = with_waiting(values, len(responses_s), self._table[self._active], at_s)
        arrived, self._arrived = self._arrived, 0
        return Measured(at_s, seconds, values, full, arrived, int(self._waiting().sum()))

    def _forget(self) -> None:
        self._responses: list[Floats] = []
        self._slowdowns: list[Floats] = []
        self._tardiness: tuple[Floats, ...] = ()
        self._area = self._bytes_area = self._worth = 0.0
        self._judged = 0

    def _count(self, unit: int, responses_s: Floats, at_s: float) -> None:
        self._responses.append(responses_s)
        if len(responses_s):
            self._stale[unit].add(at_s - float(responses_s.max()), at_s)
        self._slowdowns.append(responses_s / self._table["ideal_s"][unit])
        graph = self._graphs[int(self._table["query"][unit])]
        if graph is not None:
            self._worth += float(np.interp(responses_s, graph.latencies_s, graph.utilities).sum())
            self._judged += len(responses_s)

    def _waiting(self) -> Ints:
        """Return the tuples that wait at each unit; 0 at one that does not run."""
        waiting: Ints = self._table["pending"] * self._active
        return waiting

    def _pass(self, at_s: float) -> None:
        if self._at_s is None:
            self._at_s = self._looked_at_s = at_s
        passed_s = max(0.0, at_s - self._at_s)
        waiting = self._waiting()
        self._area += float(waiting.sum()) * passed_s
        self._bytes_area += float(waiting @ self._tuple_bytes[self._table["stream"]]) * passed_s
        self._at_s = max(self._at_s, at_s)
