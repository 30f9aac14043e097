"""The load shedder: which tuples to drop when more arrive than can be processed (Aurora §2.2)."""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import pairwise
from math import prod

import numpy as np

from headgate.errors import ConfigRefused
from headgate.model.arrays import Bools, Floats, Ints
from headgate.model.network.unit_table import UnitTable
from headgate.model.network.units import Units, UnitShape
from headgate.model.qos_graph import QoSGraph

RATES = 5
"""The rate of arrivals is the mean over this many periods, so a single burst is no overload."""

STEP, FULL_STEP = 0.1, 0.25
"""Each period, the work to save grows by a share of the workers' time: by `STEP` while a QoS target
is missed, by `FULL_STEP` while a budget is full. While all is acceptable, it falls by `STEP`."""


@dataclass(frozen=True, slots=True)
class Load:
    """The load at an instant.

    Args:
        arrived: by stream, the tuples that have arrived so far.
        pending: by unit, the tuples that wait.
        poor: the QoS target that is missed, in words; empty if none is.
        acceptable: whether all QoS targets are met, with a margin.
        full: whether a budget of memory or disk is used up.
        drops_queues: whether a drop also takes the tuples that wait already.
        groups: by unit, the same number for units that share their code; they drop the same.
        active: by unit, whether it runs; None if all do. The others need no time and drop nothing.
        losses: by unit that drops by value, the utility left by the share of tuples dropped.
    """

    at_s: float
    arrived: Ints
    pending: Ints
    workers: int
    poor: str = ""
    acceptable: bool = True
    full: bool = False
    drops_queues: bool = False
    groups: Ints | None = None
    active: Bools | None = None
    losses: Mapping[int, QoSGraph] = field(default_factory=dict)


@dataclass(slots=True)
class Piece:
    """A share of a unit's tuples that may be dropped, and what is lost per second that this saves.

    Args:
        units: units that drop the same tuples.
        saved_s: the seconds per second that are saved if the whole share is dropped.
    """

    worth: float
    units: list[int]
    share: float
    saved_s: float


class Shedder:
    """A load shedder: every period it decides which share of each unit's tuples to drop.

    Shedding begins when one of three things happens: new tuples and the backlog need more than
    `headroom` of the workers' time, a QoS target is missed, or a budget is full. Tuples are then
    dropped where the least QoS is lost per second saved, until the rest needs at most `stops_at` of
    `headroom`. Shedding ends when everything that arrives would fit and all targets are met. A
    query that does not allow shedding is never shed.

    The worth of a query's tuples is w S / C̄ times the slope of its loss graph: the utility lost
    per share of tuples dropped, 1 without a graph.

    Args:
        period_s: seconds between two decisions.
        headroom: the share of the workers' time that may be used.
        patience_s: seconds of pending work per worker that are tolerated. Work beyond that is to be
            done within the next `patience_s`.
        by_value: drop the tuples first that a query's first box would drop anyway, which loses
            nothing. Only a simulation knows them.
        stops_at: the share of `headroom` below which shedding ends.
    """

    def __init__(
        self,
        *,
        period_s: float = 1.0,
        headroom: float = 0.95,
        patience_s: float = 1.0,
        by_value: bool = False,
        stops_at: float = 0.9,
    ) -> None:
        for key, value in (("period_s", period_s), ("patience_s", patience_s)):
            if not value > 0:
                raise ConfigRefused(
                    path="shedder", key=key, value=value, expected="above 0 seconds"
                )
        for key, value in (("headroom", headroom), ("stops_at", stops_at)):
            if not 0 < value <= 1:
                raise ConfigRefused(
                    path="shedder", key=key, value=value, expected="above 0 and at most 1"
                )
        self.period_s, self.headroom, self.patience_s = period_s, headroom, patience_s
        self.by_value, self.stops_at = by_value, stops_at
        self.reason = ""
        """Why tuples are dropped at present; empty while none are."""
        self._relief_s = 0.0
        self._seen: deque[tuple[float, Ints]] = deque(maxlen=RATES + 1)

    def rates(self, load: Load, units: Units, table: UnitTable) -> Floats:
        """Return for each unit the share of its tuples to drop until the next decision."""
        rates = np.zeros(len(units))
        arrived = np.zeros_like(load.arrived)
        if self._seen:  # a stream that has come since had nothing before
            before_s, before = self._seen[0]
            arrived[: len(before)] = before
        self._seen.append((load.at_s, load.arrived.copy()))
        if len(self._seen) < 2 or load.at_s <= before_s:
            return rates
        incoming = (load.arrived - arrived) / (load.at_s - before_s)
        per_s = np.array([sum(incoming[s] for s in shape.streams) for shape in units.shapes])
        # On the way through several queues, each has its own arrivals.
        costs_s = np.nan_to_num(table["box_cost_s" if load.drops_queues else "tuple_cost_s"])
        if load.active is not None:
            costs_s = np.where(load.active, costs_s, 0.0)
        late_s = max(0.0, float(load.pending @ costs_s) - self.patience_s * load.workers)
        work_s = float(per_s @ costs_s)
        asked_s = work_s + late_s / self.patience_s
        if load.drops_queues:
            per_s = per_s + load.pending / self.patience_s
        pieces = [*self._pieces(units, table, per_s, load)]
        self._relieve(load, sum(piece.saved_s for _, rest in pieces for piece in rest))
        limit_s = self.headroom * load.workers
        target_s = self.stops_at * limit_s
        excess_s = asked_s - target_s if asked_s > (target_s if self.reason else limit_s) else 0.0
        self.reason = self._why(load, work_s > target_s, excess_s)
        for piece, share in self._chosen(pieces, excess_s + self._relief_s):
            rates[piece.units] += share
        return np.minimum(rates, 1.0)

    def _relieve(self, load: Load, most_s: float) -> None:
        """Relieve the workers more while QoS is poor or a budget full, less while all is well."""
        if load.full:
            self._relief_s += FULL_STEP * load.workers
        elif load.poor:
            self._relief_s += STEP * load.workers
        elif load.acceptable:
            self._relief_s -= STEP * load.workers
        self._relief_s = min(max(0.0, self._relief_s), most_s)

    def _why(self, load: Load, by_rate: bool, excess_s: float) -> str:
        if load.full:
            return "a budget is full"
        if load.poor:
            return load.poor
        if excess_s > 0:
            return "more arrives than can be processed" if by_rate else "too much waits"
        return self.reason if self._relief_s else ""

    def _chosen(
        self, queues: list[tuple[int, list[Piece]]], excess_s: float
    ) -> Iterator[tuple[Piece, float]]:
        """Yield the pieces to drop, and the share of tuples that each takes, least worth first.

        The pieces of a unit are taken in their order: the first tuples dropped come first.
        """
        heap = [(pieces[0].worth, place, 0) for place, (_, pieces) in enumerate(queues) if pieces]
        heapify(heap)
        while heap and excess_s > 0:
            _, place, number = heappop(heap)
            pieces = queues[place][1]
            piece = pieces[number]
            if piece.saved_s > 0:
                saved_s = min(piece.saved_s, excess_s)
                excess_s -= saved_s
                yield piece, piece.share * saved_s / piece.saved_s
            if number + 1 < len(pieces):
                heappush(heap, (pieces[number + 1].worth, place, number + 1))

    def _pieces(
        self, units: Units, table: UnitTable, per_s: Floats, load: Load
    ) -> Iterator[tuple[int, list[Piece]]]:
        """Yield what may be dropped: for units that drop the same, the pieces in their order."""
        alike: dict[int, list[UnitShape]] = {}
        for shape in units.shapes:
            number = shape.number
            if load.active is not None and not load.active[number]:
                continue
            group = number if load.groups is None else int(load.groups[number])
            alike.setdefault(group, []).append(shape)
        for group, shapes in alike.items():
            numbers = [shape.number for shape in shapes]
            saved_s = float(per_s[numbers] @ table["tuple_cost_s"][numbers])
            if saved_s > 0 and all(may_shed(units, shape) for shape in shapes):
                yield group, [*self._pieces_of(units, table, shapes, per_s, load.losses)]

    def _pieces_of(
        self, units: Units, table: UnitTable, shapes: list[UnitShape], per_s: Floats,
        by_value: Mapping[int, QoSGraph],
    ) -> Iterator[Piece]:  # fmt: skip
        """Yield the pieces of units that drop the same, from the first share dropped to the last.

        Dropping a tuple that the first box drops anyway saves the cost of that box alone. The rest
        of the expected cost is spread over the other tuples.
        """
        numbers = [shape.number for shape in shapes]
        rows = table[numbers]
        tuple_s = float(rows["tuple_cost_s"].sum())
        saved_s = float(per_s[numbers] @ rows["tuple_cost_s"])
        useless = first_s = 0.0
        if self.by_value:
            (shape,) = shapes
            useless = max(0.0, 1.0 - units.graph.selectivity(shape.box, shape.side))
            first_s = units.graph.nodes[shape.box].cost_s
        if useless:
            yield Piece(0.0, numbers, useless, useless * first_s * float(per_s[numbers[0]]))
        left_s = tuple_s - useless * first_s
        if useless == 1.0 or not left_s > 0:
            return
        losses = [
            (
                float(row["selectivity"]) * query.weight,
                [graph for graph in (query.loss, by_value.get(shape.number)) if graph is not None],
            )
            for row, shape in zip(rows, shapes, strict=True)
            for query in (units.network.paths[number].query for number in shape.queries)
        ]
        points = [point for _, graphs in losses for graph in graphs for point, _ in graph.points]
        bends = {point for point in points if 0 < point < 1}
        for begin, end in pairwise([0.0, *sorted(bends), 1.0]):
            lost = sum(rate * _lost(graphs, begin, end) for rate, graphs in losses)
            share = end - begin
            yield Piece(
                lost / share / left_s, numbers, share * (1.0 - useless),
                share * saved_s * left_s / tuple_s,
            )  # fmt: skip


def _lost(graphs: Sequence[QoSGraph], begin: float, end: float) -> float:
    """Return the utility lost while the share of dropped tuples goes from `begin` to `end`.

    Graphs of one query are multiplied (Aurora §2.1 lets an output have several).
    """
    if not graphs:
        return end - begin
    before, after = (prod(graph.utility(share) for graph in graphs) for share in (begin, end))
    return before - after


def may_shed(units: Units, shape: UnitShape) -> bool:
    """Return True if tuples may be dropped before a unit: all its queries allow and can do it."""
    paths = [units.network.paths[query] for query in shape.queries]
    return all(
        path.query.allows_shedding
        and path.query.on_error == "fail"
        and not path.kind.refuses_shedding
        for path in paths
    )
