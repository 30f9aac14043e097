"""The metrics of one run: response time and slowdown by query and class, queue size, overhead."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import nan

import numpy as np

from headgate.metrics.over_time import ResultsOverTime
from headgate.metrics.tally import Summary, Tally
from headgate.model.arrays import Ints, moved, places_before
from headgate.model.events import Event, StepFinished, TrainArrived, TuplesShed, UnitFailed
from headgate.model.network.network import Network
from headgate.model.network.unit_table import UnitTable


@dataclass(frozen=True)
class Line:
    """The line of a report for one query, one class or all queries."""

    name: str
    tuples_in: int
    response_s: Summary
    slowdown: Summary
    pending: int
    pending_mean: float
    pending_max: int
    busy_s: float
    output_per_s: float = nan
    staleness: float = nan
    """Share of the time in which a tuple that will give a result waits, a mean over queries."""
    weighted_staleness: float = nan
    tardiness_s: float = nan
    """How late the results of windows are, as a mean and, in `tardiness_max_s`, as a maximum."""
    tardiness_max_s: float = nan
    qos: float = nan
    """Mean utility of the results, by the queries' QoS graphs."""
    shed: int = 0


class PendingOverTime:
    """Pending tuples by class, in at most a few hundred samples however long the run.

    >>> samples = PendingOverTime(every_s=1.0, most=4)
    >>> for second in range(9):
    ...     samples.see(float(second), np.array([second]))
    >>> samples.rows
    [(0.0, 0), (4.0, 4), (8.0, 8)]
    """

    def __init__(self, every_s: float = 0.25, most: int = 512) -> None:
        self._every_s, self._most, self._next_s = every_s, most, 0.0
        self.rows: list[tuple[float, ...]] = []

    def see(self, at_s: float, by_class: Ints) -> None:
        """Record a sample if one is due; if there are too many, drop every other one."""
        if at_s < self._next_s:
            return
        self.rows.append((at_s, *by_class.tolist()))
        if len(self.rows) > self._most:
            self.rows = self.rows[::2]
            self._every_s *= 2
        self._next_s = self.rows[-1][0] + self._every_s


@dataclass
class Past:
    """What queries did while they were in a class that they have left, or before they left."""

    responses: Tally = field(default_factory=Tally)
    slowdowns: Tally = field(default_factory=Tally)
    tuples_in: int = 0
    shed: int = 0
    busy_s: float = 0.0
    pending_area: float = 0.0

    def add(self, other: "Past") -> None:
        self.responses.merge(other.responses)
        self.slowdowns.merge(other.slowdowns)
        self.tuples_in += other.tuples_in
        self.shed += other.shed
        self.busy_s += other.busy_s
        self.pending_area += other.pending_area


class RunMetrics:
    """The metrics of a run, updated by each event; `by_query`, `by_class` and `total` read them.

    Response time is D − A of every output tuple (Sharaf definition 1), slowdown is response over
    the ideal time of its query (definition 2). Queue sizes are means over time. A class has what
    its queries did while they were in it.
    """

    def __init__(self, network: Network, table: UnitTable) -> None:
        self.network, self.table = network, table
        count = len(table)
        self._responses = [Tally() for _ in range(count)]
        self._slowdowns = [Tally() for _ in range(count)]
        self._tuples_in = np.zeros(count, dtype=np.int64)
        self._shed = np.zeros(count, dtype=np.int64)
        self._busy_s = np.zeros(count)
        self._pending: Ints = table["pending"].copy()
        self._pending_max = self._pending.copy()
        self._class_max = np.zeros(len(network.classes), dtype=np.int64)
        self._total_max = 0
        self._pending_area = np.zeros(count)
        self._past = [Past() for _ in network.classes]
        self._past_by_id: dict[int, Past] = {}
        """By id of a query whose class has changed, what it did before."""
        self._began_s: float | None = None
        self._last_s = 0.0
        self.calls = 0
        self.overhead_s = 0.0
        self.pending_over_time = PendingOverTime()
        self.results_over_time = ResultsOverTime()
        self.errors: list[Exception] = []

    def change(self, network: Network, table: UnitTable) -> None:
        """Add new queries and remove dropped ones, and move queries to other classes.

        The metrics so far stay with the class.

        Args:
            table: the table of the network, with the tuples that already wait for new queries.
        """
        before = places_before(network.places, self.network.places)
        rows = before.tolist()
        for unit in set(range(len(self.table))).difference(rows):
            self._leave_class(unit)
        for number, unit, query_class in zip(
            network.places, rows, table["query_class"].tolist(), strict=True
        ):
            if unit >= 0 and query_class != self.table["query_class"][unit]:
                past = self._leave_class(unit)
                self._past_by_id.setdefault(number, Past()).add(past)
        self._responses = [Tally() if row < 0 else self._responses[row] for row in rows]
        self._slowdowns = [Tally() if row < 0 else self._slowdowns[row] for row in rows]
        self._tuples_in = moved(self._tuples_in, before)
        self._shed = moved(self._shed, before)
        self._busy_s = moved(self._busy_s, before)
        waiting = table["pending"]
        self._pending = np.where(before < 0, waiting, moved(self._pending, before))
        self._pending_max = np.where(before < 0, waiting, moved(self._pending_max, before))
        self._pending_area = moved(self._pending_area, before)
        self.network, self.table = network, table

    def _leave_class(self, unit: int) -> Past:
        """Move what a unit did in its class to the past of this class, and return it."""
        did = self._in_class(unit)
        self._past[int(self.table["query_class"][unit])].add(did)
        self._responses[unit], self._slowdowns[unit] = Tally(), Tally()
        for figures in (self._tuples_in, self._shed, self._busy_s, self._pending_area):
            figures[unit] = 0
        return did

    def _in_class(self, unit: int) -> Past:
        """Return what a unit did since it is in its class."""
        return Past(
            self._responses[unit], self._slowdowns[unit], int(self._tuples_in[unit]),
            int(self._shed[unit]), float(self._busy_s[unit]), float(self._pending_area[unit]),
        )  # fmt: skip

    def hear(self, event: Event) -> None:
        """Update the metrics with one event."""
        passed_s = self._pass_time(event.at_s)
        match event:
            case TrainArrived():
                self._arrive(event, passed_s)
            case StepFinished():
                self._finish(event)
            case TuplesShed():
                unit = self.network.places[event.unit]
                self._shed[unit] += event.tuples
                self._pending[unit] -= event.tuples
            case UnitFailed():
                if not any(error is event.error for error in self.errors):  # segments fail together
                    self.errors.append(event.error)
        by_class = self._by_class()
        self.pending_over_time.see(self.seconds, by_class)
        self.results_over_time.see(self.seconds, int(by_class.sum()))

    @property
    def seconds(self) -> float:
        """Seconds from the first event to the last."""
        return self._last_s - (self._began_s or 0.0)

    def by_query(self) -> list[Line]:
        network, past_by_id = self.network, self._past_by_id
        return [
            self._line(
                network.paths[unit].query.name, [unit], int(self._pending_max[unit]),
                [past_by_id[number]] if number in past_by_id else (),
            )
            for number, unit in network.places.items()
        ]  # fmt: skip

    def by_class(self) -> list[Line]:
        return [
            self._line(
                query_class.name,
                np.flatnonzero(self.table["query_class"] == number).tolist(),
                int(self._class_max[number]),
                self._past[number : number + 1],
            )
            for number, query_class in enumerate(self.network.classes)
        ]

    def total(self) -> Line:
        return self._line("all", range(len(self.table)), self._total_max, self._past)

    def _arrive(self, event: TrainArrived, passed_s: float) -> None:
        """Count arrived trains. Each has waited since its own arrival, not since the event."""
        readers = self.table["stream"] == event.stream
        waited_s = np.clip(event.at_s - event.mean_arrived_at_s, 0.0, passed_s)
        self._pending_area[readers] += float(event.tuples @ waited_s)
        self._pending[readers] += int(event.tuples.sum())
        np.maximum(self._pending_max, self._pending, out=self._pending_max)
        np.maximum(self._class_max, self._by_class(), out=self._class_max)
        self._total_max = max(self._total_max, int(self._pending.sum()))

    def _by_class(self) -> Ints:
        classes = self.table["query_class"]
        counts = np.bincount(classes, self._pending, minlength=len(self._class_max))
        return counts.astype(np.int64)

    def _finish(self, event: StepFinished) -> None:
        call, places = event.call, self.network.places
        all_units = [places[number] for number in call.units]
        self.calls += 1
        self.overhead_s += float(self.table["overhead_s"][all_units].max())
        ideals_s = self.table["ideal_s"][all_units].tolist()
        all_s, slowed = [], []
        for unit, ideal_s, responses_s in zip(all_units, ideals_s, event.responses_s, strict=True):
            if not len(responses_s):
                continue
            slowdowns = responses_s / ideal_s
            self._responses[unit].add(responses_s)
            self._slowdowns[unit].add(slowdowns)
            all_s.append(responses_s)
            slowed.append(slowdowns)
        if all_s:
            together = np.concatenate(all_s), np.concatenate(slowed)
            self.results_over_time.add(self.seconds, *together)
        units = [places[number] for number in call.units if number not in event.failed]
        self._tuples_in[units] += call.tuples
        self._pending[units] -= call.tuples
        self._busy_s[all_units] += event.seconds / len(call.units)

    def _pass_time(self, at_s: float) -> float:
        if self._began_s is None:
            self._began_s = self._last_s = at_s
        passed_s = max(0.0, at_s - self._last_s)
        self._pending_area += self._pending * passed_s
        self._last_s += passed_s
        return passed_s

    def _line(
        self, name: str, units: Iterable[int], pending_max: int, pasts: Sequence[Past] = ()
    ) -> Line:
        chosen, all_did = list(units), Past()
        for did in (*map(self._in_class, chosen), *pasts):
            all_did.add(did)
        response_s = all_did.responses.summary()
        return Line(
            name=name,
            tuples_in=all_did.tuples_in,
            response_s=response_s,
            slowdown=all_did.slowdowns.summary(),
            pending=int(self._pending[chosen].sum()),
            pending_mean=all_did.pending_area / (self.seconds or 1.0),
            pending_max=pending_max,
            busy_s=all_did.busy_s,
            shed=all_did.shed,
            output_per_s=response_s.count / (self.seconds or nan),
        )
