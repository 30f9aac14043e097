"""The metrics of one run, by query, by class and for all queries."""

from collections.abc import Collection, Iterable, Sequence
from math import nan

import numpy as np

from headgate.metrics.arrival_times import ArrivalTimes
from headgate.metrics.histogram import Histogram
from headgate.metrics.line import Line
from headgate.metrics.query_totals import (
    BACKFILLED,
    BUSY_S,
    DUE,
    IDLE_S,
    LOST,
    PENDING_AREA,
    SHED,
    TUPLES_IN,
    WORTH,
    QueryTotals,
)
from headgate.metrics.stale_time import StaleTime
from headgate.metrics.time_series import PendingOverTime, ResultsOverTime
from headgate.metrics.utility import Utility
from headgate.model.arrays import Floats, Ints, moved, places_before
from headgate.model.events import Event, StepFinished, TrainArrived, UnitFailed
from headgate.model.network.network import Network
from headgate.model.network.unit_table import UnitTable


class RunMetrics:
    """The metrics of a run, updated by each event; `by_query`, `by_class` and `total` read them.

    Response time is D − A of every output tuple (Sharaf definition 1), slowdown is response over
    the ideal time of its query (definition 2). Queue sizes are means over time. QoS is the mean
    utility of the results that were due: those of tuples that were shed count by the loss graph,
    those of tuples that wait count S each, at their present age. A class has what its queries did
    while they were in it, but staleness is that of the queries which are in it now.
    """

    def __init__(self, network: Network, table: UnitTable) -> None:
        self.network, self.table = network, table
        count = len(table)
        self._did = [QueryTotals() for _ in range(count)]
        self._sums = np.zeros((DUE + 1, count))
        self._pending: Ints = table["pending"].copy()
        self._pending_max = self._pending.copy()
        self._class_max = np.zeros(len(network.classes), dtype=np.int64)
        self._total_max = 0
        self._past = [QueryTotals() for _ in network.classes]
        self._past_by_id: dict[int, QueryTotals] = {}
        """By id of a query whose class has changed, what it did before."""
        self._began_s: float | None = None
        self._last_s = 0.0
        self._utility = Utility(network)
        self._waiting: dict[int, ArrivalTimes] = {}
        """By stream, the trains that may still wait."""
        self._stale: dict[int, StaleTime] = {}
        """By id of a unit that has put out a result."""
        self._since_s: dict[int, float] = dict.fromkeys(network.places, 0.0)
        """By id of a unit, when it came."""
        self._tuple_bytes: dict[int, float] = {}
        """By stream, the size of its tuples."""
        self._unit_bytes = np.zeros(count)
        self._bytes_area = 0.0
        self.bytes_max = nan
        self.calls = 0
        self.overhead_s = 0.0
        self.pending_over_time = PendingOverTime()
        self.results_over_time = ResultsOverTime()
        self.errors: list[Exception] = []

    def change(self, network: Network, table: UnitTable, begun: Collection[int] = ()) -> None:
        """Add new queries and remove dropped ones, and move queries to other classes.

        The metrics so far stay with the class.

        Args:
            table: the table of the network, with the tuples that already wait for new queries.
            begun: the ids of units that begin again, perhaps after trains that were dropped.
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
                self._past_by_id.setdefault(number, QueryTotals()).add(past)
        self._did = [QueryTotals() if row < 0 else self._did[row] for row in rows]
        self._sums = moved(self._sums, before)
        waiting = table["pending"]
        is_new = (before < 0) | np.isin([*network.places], [*begun])
        self._pending = np.where(is_new, waiting, moved(self._pending, before))
        self._pending_max = np.where(before < 0, waiting, moved(self._pending_max, before))
        self._since_s = {
            number: self._since_s.get(number, self._last_s) for number in network.places
        }
        self._stale = {number: self._stale[number] for number in network.places
                       if number in self._stale}  # fmt: skip
        self._utility = Utility(network)
        self.network, self.table = network, table
        self._size_units()

    def _leave_class(self, unit: int) -> QueryTotals:
        """Move what a unit did in its class to the past of this class, and return it."""
        did = self._in_class(unit)
        self._past[int(self.table["query_class"][unit])].add(did)
        self._did[unit] = QueryTotals()
        self._sums[:, unit] = 0
        return did

    def _in_class(self, unit: int) -> QueryTotals:
        """Return what a unit did since it is in its class."""
        did, sums = self._did[unit], self._sums[:, unit].copy()
        if sums[SHED]:
            fraction = sums[SHED] / (sums[SHED] + sums[TUPLES_IN])
            sums[WORTH] += sums[LOST] * self._utility.of_shed(unit, float(fraction))
        return QueryTotals(did.responses, did.slowdowns, did.tardiness, sums)

    def hear(self, event: Event) -> None:
        """Update the metrics with one event."""
        passed_s = self._pass_time(event.at_s)
        match event:
            case TrainArrived():
                self._arrive(event, passed_s)
            case StepFinished():
                self._finish(event)
            case UnitFailed():
                if not any(error is event.error for error in self.errors):  # segments fail together
                    self.errors.append(event.error)
        by_class = self._by_class()
        self.pending_over_time.see(self.seconds, by_class)
        self.results_over_time.see(self.seconds, int(by_class.sum()), self._pending_bytes())

    @property
    def bytes_mean(self) -> float:
        """The mean size of all queues in bytes; NaN before the first tuple whose size is known."""
        return self._bytes_area / (self.seconds or nan) if self._tuple_bytes else nan

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

    def responses(self) -> tuple[dict[str, Histogram], dict[str, Histogram]]:
        """Return histograms of the response times, by query and by class."""
        units = [Histogram.of(did.responses) for did in self._did]
        classes = [Histogram.of(past.responses) for past in self._past]
        for unit, query_class in enumerate(self.table["query_class"].tolist()):
            classes[query_class] += units[unit]
        for number in self._past_by_id.keys() & self.network.places.keys():
            units[self.network.places[number]] += Histogram.of(self._past_by_id[number].responses)
        queries = [path.query.name for path in self.network.paths]
        names = [query_class.name for query_class in self.network.classes]
        by_query = dict(zip(queries, units, strict=True))
        return by_query, dict(zip(names, classes, strict=True))

    def _arrive(self, event: TrainArrived, passed_s: float) -> None:
        """Count arrived trains. Each has waited since its own arrival, not since the event."""
        readers = self.table["stream"] == event.stream
        waited_s = np.clip(event.at_s - event.mean_arrived_at_s, 0.0, passed_s)
        self._sums[PENDING_AREA, readers] += float(event.tuples @ waited_s)
        self._pending[readers] += int(event.tuples.sum())
        if self._utility.applies:
            trains = self._waiting.setdefault(event.stream, ArrivalTimes())
            longest = int(self._pending[readers].max(initial=1))
            trains.add(event.tuples, event.mean_arrived_at_s, longest)
        if event.tuple_bytes:
            self._tuple_bytes[event.stream] = event.tuple_bytes
            self._size_units()
            self.bytes_max = float(np.fmax(self.bytes_max, self._pending_bytes()))
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
        all_s, slowed, worths = [], [], []
        for place, (unit, ideal_s, responses_s) in enumerate(
            zip(all_units, ideals_s, event.responses_s, strict=True)
        ):
            if not len(responses_s):
                continue
            scheduled_s = event.scheduled_s(place)
            slowdowns = scheduled_s / ideal_s
            self._sums[IDLE_S, unit] += float((responses_s - scheduled_s).sum())
            did = self._did[unit]
            did.responses.add(responses_s)
            did.slowdowns.add(slowdowns)
            if event.tardiness_s:
                did.tardiness.add(event.tardiness_s[place])
            worth = self._utility.of(unit, responses_s)
            if worth is not None:
                weight = float(self.table["weight"][unit])
                self._sums[WORTH, unit] += weight * float(worth.sum())
                self._sums[DUE, unit] += weight * len(worth)
            number = call.units[place]
            if number not in self._stale:
                self._stale[number] = StaleTime(max(self._since_s[number], self._began_s or 0.0))
            oldest_s = float(np.max(responses_s, initial=0.0, where=np.isfinite(responses_s)))
            self._stale[number].add(event.at_s - oldest_s, event.at_s)
            all_s.append(responses_s)
            slowed.append(slowdowns)
            worths.append(np.full(len(responses_s), nan) if worth is None else worth)
        if all_s:
            together = map(np.concatenate, (all_s, slowed, worths))
            self.results_over_time.add(self.seconds, *together)
        if event.backfilled:
            np.add.at(self._sums[BACKFILLED], all_units, event.backfilled)
        units = [places[number] for number in call.units if number not in event.failed]
        self._sums[TUPLES_IN, units] += call.tuples
        for unit, shed in zip(all_units, event.shed, strict=False):  # nothing where none is shed
            self._sums[TUPLES_IN, unit] -= shed
            self._sums[SHED, unit] += shed
            self._sums[[LOST, DUE], unit] += self._due(unit, shed)
        self._pending[units] -= call.tuples
        self._sums[BUSY_S, all_units] += event.seconds / len(call.units)

    def _due(self, unit: int, tuples: float) -> float:
        """Return how many results tuples would give, times the weight; 0 without a QoS graph."""
        row = self.table[unit]
        selectivity = float(row["selectivity"])
        if not self._utility.has(unit) or np.isnan(selectivity):
            return 0.0
        return float(row["weight"]) * selectivity * tuples

    def _still_due(self, unit: int) -> Floats:
        """Return WORTH and DUE of the tuples that wait at a unit, at their present age."""
        pending = int(self._pending[unit])
        trains = self._waiting.get(int(self.table["stream"][unit]))
        due = self._due(unit, 1.0)
        if not pending or not due or trains is None:
            return np.zeros(2)
        tuples, arrived_at_s = trains.newest(pending)
        worth = self._utility.of(unit, self._last_s - arrived_at_s)
        assert worth is not None
        return due * np.array([float(tuples @ worth), float(tuples.sum())])

    def _staleness(self, units: Sequence[int]) -> tuple[float, float, float]:
        """Return staleness as it was, as expected, and weighted: means over units with results."""
        numbers, now_s = list(self.network.places), self._last_s
        shares, expected, weights = [], [], []
        for unit in units:
            number = numbers[unit]
            if number not in self._stale:
                continue
            stale, row = self._stale[number], self.table[unit]
            elapsed_s = now_s - max(self._since_s[number], self._began_s or 0.0)
            if elapsed_s <= 0:
                continue
            stale_s = expected_s = stale.seconds
            head_s, pending = float(row["head_arrived_at_s"]), int(self._pending[unit])
            if pending and head_s < now_s:
                probability = 1.0 - (1.0 - min(1.0, float(row["selectivity"]))) ** pending
                expected_s = stale.before(head_s) + probability * (now_s - head_s)
            shares.append(min(1.0, stale_s / elapsed_s))
            expected.append(min(1.0, expected_s / elapsed_s))
            weights.append(float(row["weight"]))
        if not shares:
            return nan, nan, nan
        weighted = float(np.average(shares, weights=weights)) if sum(weights) else nan
        return float(np.mean(shares)), float(np.mean(expected)), weighted

    def _size_units(self) -> None:
        """Set the size of the tuples that wait at each unit; 0 where unknown."""
        streams = self.table["stream"].tolist()
        self._unit_bytes = np.array([self._tuple_bytes.get(stream, 0.0) for stream in streams])

    def _pending_bytes(self) -> float:
        """Return the size of all queues in bytes."""
        return float(self._pending @ self._unit_bytes)

    def _pass_time(self, at_s: float) -> float:
        if self._began_s is None:
            self._began_s = self._last_s = at_s
        passed_s = max(0.0, at_s - self._last_s)
        self._sums[PENDING_AREA] += self._pending * passed_s
        self._bytes_area += self._pending_bytes() * passed_s
        self._last_s += passed_s
        return passed_s

    def _line(
        self, name: str, units: Iterable[int], pending_max: int, pasts: Sequence[QueryTotals] = ()
    ) -> Line:
        chosen = list(units)
        parts = [*map(self._in_class, chosen), *pasts]
        all_did = QueryTotals.of(parts) if len(parts) > 1 else parts[0]
        response_s, sums = all_did.responses.summary(), all_did.sums
        tardiness_s = all_did.tardiness.summary()
        worth, due = sums[WORTH:] + sum((self._still_due(unit) for unit in chosen), np.zeros(2))
        staleness, staleness_expected, weighted_staleness = self._staleness(chosen)
        return Line(
            name=name,
            tuples_in=int(sums[TUPLES_IN]),
            response_s=response_s,
            slowdown=all_did.slowdowns.summary(),
            pending=int(self._pending[chosen].sum()),
            pending_mean=float(sums[PENDING_AREA]) / (self.seconds or 1.0),
            pending_max=pending_max,
            busy_s=float(sums[BUSY_S]),
            output_per_s=response_s.count / (self.seconds or nan),
            staleness=staleness,
            staleness_expected=staleness_expected,
            weighted_staleness=weighted_staleness,
            tardiness_s=tardiness_s.mean,
            tardiness_max_s=tardiness_s.maximum,
            idle_wait_s=float(sums[IDLE_S]) / response_s.count if sums[IDLE_S] else nan,
            qos=float(worth / due) if due else nan,
            shed=int(sums[SHED]),
            backfilled=int(sums[BACKFILLED]),
        )
