"""Look-ahead: every candidate policy runs for a while from the present state (beyond AMoS §3)."""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from math import ceil
from typing import Any, Protocol

import numpy as np

from headgate.compiled import compiled
from headgate.metrics.tally import SMALLEST, STEP
from headgate.model.arrays import Floats
from headgate.model.network.units import Units
from headgate.model.outlook import Outlook
from headgate.model.plan import ALL
from headgate.policies.interface import Policy, Selection
from headgate.simulation.kernel.bins import bin_of
from headgate.simulation.loop.expected_arrivals import (
    Expected,
    expected_arrivals,
    recent_per_s,
    true_arrivals,
)
from headgate.simulation.loop.plain_loop import is_plain
from headgate.simulation.world.pointer import World
from headgate.simulation.world.records import NONE
from headgate.simulation.world.world import FIELDS
from headgate.workloads.random_hash import DRAWS

FUTURES = 4
"""How many random futures every candidate meets; all candidates meet the same ones."""

MOST_CALLS = 200_000
"""The most simulated calls of an outlook, over all candidates and futures."""

SUMS = 8


class Run(Protocol):
    """A run ahead: see `Simulation`."""

    world: World
    decisions_a_report: int

    def run_until(self, at_s: float, progress: Callable[[float], None]) -> None: ...


class Present(Protocol):
    """The run whose policies look ahead: see `Simulation`."""

    world: World
    units: Units

    def selection(self, inner: Policy) -> Selection | None: ...

    def fork(
        self, world: World, policy: Policy, selection: Selection | None, train: int
    ) -> Run: ...


class TooLong(Exception):
    """A candidate needs more calls than it may have."""


class LookAhead:
    """Runs candidates ahead from copies of a world, without knowing what will really come.

    A copy has the queues, their ages and the measured figures of its world. The arrivals after now
    are replaced by expected ones, and other random numbers decide which tuples pass.

    Args:
        futures: how many random futures every candidate meets.
        most_calls: the most simulated calls of an outlook, over all candidates and futures.
        foreknows: for a comparison, the true future instead, as only an oracle knows it.
    """

    def __init__(
        self,
        simulation: Present,
        *,
        futures: int = FUTURES,
        most_calls: int = MOST_CALLS,
        foreknows: bool = False,
    ) -> None:
        self._simulation, self._foreknows = simulation, foreknows
        self._futures = 1 if foreknows else futures
        self._most_calls = ALL if foreknows else most_calls
        self._twins: dict[Policy, tuple[Policy, Selection | None]] = {}
        self._looks = 0
        self._share = 1.0

    def outlook(self, candidates: Sequence[Policy], horizon_s: float) -> Outlook | None:
        """Return what each candidate would achieve within the horizon; None if it is too long."""
        world = self._simulation.world
        now_s = float(world.clock["now_s"][0])
        self._looks += 1
        calls = self._most_calls // (max(1, len(candidates)) * self._futures)
        horizon_s *= self._share
        if len(world.closings):  # it has the windows until the last arrival, and no later ones
            horizon_s = min(horizon_s, float(world.order_at_s[-1]) - now_s)
        if not horizon_s > 0:
            return None
        train = self._train(world, horizon_s, calls // 2)
        values: list[list[Mapping[str, float]]] = [[] for _ in candidates]
        for number in range(self._futures):
            seed = self._looks * self._futures + number
            if self._foreknows:
                present = _present(world, true_arrivals(world, now_s + horizon_s), 1, None)
            else:
                expected = expected_arrivals(world, now_s, horizon_s, train, seed)
                present = _present(world, expected, train, seed)
            for place, policy in enumerate(candidates):
                try:
                    values[place].append(self._ahead(present, policy, horizon_s, train, calls))
                except TooLong:
                    self._share = max(self._share / 2, 1 / 64)
                    return None
        self._share = min(1.0, self._share * 2)
        return Outlook(now_s, horizon_s, tuple(map(tuple, values)))

    def _train(self, world: World, horizon_s: float, calls: int) -> int:
        """Return how many tuples to move at once, so that a candidate needs at most its calls."""
        now_s, tuples = float(world.clock["now_s"][0]), float(world.clock["pending"][0])
        for stream in range(len(world.streams)):
            row = world.streams[stream]
            readers = int(row["reader_end"] - row["reader_first"])
            tuples += recent_per_s(world, stream, now_s) * horizon_s * readers
        return max(1, ceil(tuples / calls)) if world.settings["plain"][0] else 1

    def _ahead(
        self, present: World, policy: Policy, horizon_s: float, train: int, calls: int
    ) -> Mapping[str, float]:
        twin, selection = self._twin(policy)
        if selection is None:  # it keeps its state in its own fields
            twin = self._copy_of(twin)
        if selection is not None:
            selection = replace(selection, memory=_copied(selection.memory))
        run = self._simulation.fork(_copy(present), twin, selection, train)
        run.decisions_a_report = max(100, calls // 4)
        until_s = float(present.clock["now_s"][0]) + horizon_s

        def limit(now_s: float) -> None:
            if run.world.clock["calls"][0] > calls and now_s < until_s:
                raise TooLong

        run.run_until(until_s, limit)
        return _values(run.world, present, horizon_s)

    def _twin(self, policy: Policy) -> tuple[Policy, Selection | None]:
        """Return a copy of a policy, and its selection as it is before the first decision."""
        if policy not in self._twins:
            twin = self._copy_of(policy)
            twin.prepare(self._simulation.units)
            self._twins[policy] = twin, self._simulation.selection(twin)
        return self._twins[policy]

    def _copy_of(self, policy: Policy) -> Policy:
        units = self._simulation.units
        return deepcopy(policy, {id(units): units, id(units.network): units.network})


def _copied(memory: Any) -> Any:
    if isinstance(memory, tuple):
        return tuple(map(_copied, memory))
    return memory.copy() if isinstance(memory, np.ndarray) else memory


def _copy(world: World) -> World:
    return World(**{name: getattr(world, name).copy() for name in FIELDS})


def _present(world: World, expected: Expected, train: int, seed: int | None) -> World:
    """Return a copy of a world in which only what is known now is kept, and nothing is counted."""
    arrays = {name: getattr(world, name).copy() for name in FIELDS}
    lay_out = _as_tuples if train == 1 else _as_trains
    lay_out(arrays, world, expected, train)
    stages = arrays["stages"]
    figures = world.figures
    special = (stages["drift"] != NONE) | (stages["costs"] != NONE) | (stages["fates"] != NONE)
    special |= bool(world.settings["learns"][0])
    for key in ("cost_s", "selectivity"):
        stages[key][special] = figures[key][special]
    stages["below"] = np.ceil(np.minimum(stages["selectivity"], 1.0) * DRAWS)
    for key in ("drift", "costs", "fates"):
        stages[key] = NONE
    if train > 1:
        stages["cost_s"] *= train
        for key in ("tuple_cost_s", "cost_s", "box_cost_s"):
            arrays["table"][key] *= train
    clock, settings, results = arrays["clock"], arrays["settings"], arrays["results"]
    clock["next_arrival"] = clock["calls"] = 0
    clock["pending_area"] = clock["bytes_area"] = clock["outputs"] = 0
    settings["keep"] = False
    if seed is not None:
        settings["seed"] += 7919 * (seed + 1)
    for key in COUNTS:
        results[key] = 0
    for name in ("response_bins", "slowdown_bins"):
        arrays[name][:] = 0
    present = World(**{**arrays, "order": expected.order, "order_at_s": expected.order_at_s})
    settings["plain"] = is_plain(present)
    return present


def _as_tuples(arrays: dict[str, Any], world: World, expected: Expected, train: int) -> None:
    """Put the expected arrivals of each stream behind those that have come."""
    streams, queues = arrays["streams"], arrays["queues"]
    parts, holders, left_s, first = [], [], [], 0
    for row, times_s in zip(streams, expected.times_s, strict=True):
        begin, count = int(row["first"]), int(row["arrived"])
        parts += [world.arrivals[begin : begin + count], times_s]
        more = np.zeros(len(times_s))
        holders += [world.holders[begin : begin + count], more.astype(np.int32)]
        left_s += [world.left_s[begin : begin + count], more]
        row["first"], first = first, first + count + len(times_s)
    queues["source"] = streams["first"][np.maximum(queues["stream"], 0)]
    arrays["arrivals"] = np.concatenate([*parts, np.zeros(1)])
    arrays["holders"] = np.concatenate([*holders, np.zeros(1, dtype=np.int32)])
    arrays["left_s"] = np.concatenate([*left_s, np.zeros(1)])


def _as_trains(arrays: dict[str, Any], world: World, expected: Expected, train: int) -> None:
    """Replace every `train` waiting tuples of a stream by one, which stands for all of them.

    A running call ends when it would, but has no tuples any more: its results are counted already.
    """
    streams, queues, table = arrays["streams"], arrays["queues"], arrays["table"]
    clock, workers = arrays["clock"], arrays["workers"]
    parts, holders, first = [], [], 0
    for number, (row, times_s) in enumerate(zip(streams, expected.times_s, strict=True)):
        units = np.flatnonzero(queues["stream"] == number)
        begin, count = int(row["first"]), int(row["arrived"])
        waits = table["pending"][units] > 0
        cursors = np.where(waits, queues["cursor"][units], count)
        base = int(cursors.min(initial=count))
        waiting = world.arrivals[begin + base : begin + count][::train]
        cursors = np.minimum(-(-(cursors - base) // train), len(waiting))
        sums_s = np.concatenate([np.cumsum(waiting[::-1])[::-1], np.zeros(1)])
        queues["cursor"][units], queues["arrived_sum_s"][units] = cursors, sums_s[cursors]
        table["pending"][units] = len(waiting) - cursors
        table["amount"][units] = len(waiting) - cursors
        held = np.searchsorted(np.sort(cursors), np.arange(len(waiting)), side="right")
        parts += [waiting, times_s]
        holders += [held, np.zeros(len(times_s), dtype=np.int64)]
        row["first"], row["arrived"] = first, len(waiting)
        first += len(waiting) + len(times_s)
    queues["source"] = streams["first"][np.maximum(queues["stream"], 0)]
    arrays["arrivals"] = np.concatenate([*parts, np.zeros(1)])
    arrays["holders"] = np.concatenate([*holders, np.zeros(1)]).astype(np.int32)
    arrays["left_s"] = np.zeros(first + 1)
    workers["tuples"] = workers["arrived_sum_s"] = workers["mass"] = 0
    running = workers["unit"][workers["unit"] != NONE]
    workers["taken"][workers["unit"] != NONE] = queues["cursor"][running]
    clock["pending"] = table["pending"].sum()
    clock["shared"] = np.count_nonzero(arrays["holders"])
    clock["bytes"] = (table["pending"] * table["bytes_in"]).sum()
    classes = np.bincount(
        table["query_class"], weights=table["pending"], minlength=len(arrays["class_pending"])
    )
    arrays["class_pending"] = classes.astype(np.int64)


COUNTS = (
    "outputs", "mass", "response_sum", "response_squares", "response_max", "slowdown_sum",
    "slowdown_squares", "slowdown_max", "qos_sum", "stale_s", "tardy_sum", "tardy_max",
)  # fmt: skip


def _values(world: World, before: World, horizon_s: float) -> Mapping[str, float]:
    """Return the metrics of a specification, where tuples that still wait count as if they left."""
    now_s = float(world.clock["now_s"][0])
    sums, bins = np.zeros(SUMS), world.response_bins[-1].astype(np.float64)
    _add_waiting(world, now_s, sums, bins)
    waiting, waited_s, squares_s, most_s, slowed, slow_squares, most_slow, held = sums
    began = np.zeros(SUMS)
    _add_waiting(before, float(before.clock["now_s"][0]), began, np.zeros(len(bins)))
    rows, clock = world.results, world.clock[0]
    outputs = float(rows["outputs"].sum())
    total = max(outputs + waiting, 1e-9)
    judged = rows["qos_end"] > rows["qos_first"]
    windows = float(rows["outputs"][rows["by_clock"]].sum())
    reached = np.searchsorted(np.cumsum(bins), 0.95 * bins.sum())
    return {
        "mean_response_s": (float(rows["response_sum"].sum()) + waited_s) / total,
        "max_response_s": max(float(rows["response_max"].max(initial=0.0)), most_s),
        "p95_response_s": SMALLEST * STEP ** (float(reached) + 0.5),
        "norm_response_s": (float(rows["response_squares"].sum()) + squares_s) ** 0.5,
        "mean_slowdown": (float(rows["slowdown_sum"].sum()) + slowed) / total,
        "max_slowdown": max(float(rows["slowdown_max"].max(initial=0.0)), most_slow),
        "norm_slowdown": (float(rows["slowdown_squares"].sum()) + slow_squares) ** 0.5,
        "output_per_s": outputs / horizon_s,
        "pending": float(clock["pending_area"]) / horizon_s,
        "pending_bytes": (float(clock["bytes_area"]) + held - began[7]) / horizon_s,
        "qos": float(rows["qos_sum"][judged].sum())
        / max(1.0, float(rows["outputs"][judged].sum())),
        "staleness": float(rows["stale_s"].sum()) / (horizon_s * max(1, len(rows))),
        "tardiness_s": float(rows["tardy_sum"].sum()) / windows if windows else 0.0,
    }


@compiled
def _add_waiting(world: World, now_s: float, sums: Floats, bins: Floats) -> None:
    """Add up the tuples that wait, each with the part of it that is expected to be output."""
    for unit in range(len(world.table)):
        row, queue = world.table[unit], world.queues[unit]
        if row.pending == 0:
            continue
        result = world.results[row.query]
        weight, entry, place, end_place = row.selectivity, NONE, 0, 0
        if queue.stream >= 0:
            stream = world.streams[queue.stream]
            place, end_place = stream.first + queue.cursor, stream.first + stream.arrived
        else:
            entry = queue.head
        while place < end_place or entry != NONE:
            if queue.stream >= 0:
                arrived_at_s = world.arrivals[place]
                place += 1
            else:
                arrived_at_s = world.pool[entry].arrived_at_s
                entry = world.pool[entry].next
            age_s = now_s - arrived_at_s
            slowdown = 1.0 + age_s / result.ideal_s
            sums[0] += weight
            sums[1] += weight * age_s
            sums[2] += weight * age_s * age_s
            sums[3] = max(sums[3], age_s)
            sums[4] += weight * slowdown
            sums[5] += weight * slowdown * slowdown
            sums[6] = max(sums[6], slowdown)
            sums[7] += row.bytes_in * age_s
            bins[bin_of(max(age_s, 0.0))] += weight
