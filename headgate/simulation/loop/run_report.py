"""The results of a run: the report of a whole run, and measurements of its latest interval."""

from collections.abc import Sequence
from math import nan

import numpy as np

from headgate.compiled import compiled
from headgate.metrics.line import Line
from headgate.metrics.report import Report
from headgate.metrics.tally import SMALLEST, STEP, Tally
from headgate.metrics.with_waiting import with_waiting
from headgate.model.arrays import Floats, Ints
from headgate.model.events import Measured
from headgate.model.network.units import Units
from headgate.simulation.loop.delivered_qos import delivered_qos
from headgate.simulation.world.pointer import World
from headgate.simulation.world.records import Records

SUMMED = (
    "outputs", "response_sum", "response_squares", "slowdown_sum", "slowdown_squares", "qos_sum",
    "judged", "stale_s", "tardy_sum", "windows", "response_max", "slowdown_max", "p95_bin",
)  # fmt: skip
"""The values that `_add_up` computes, in this order: sums over all queries, the two largest values
of the interval, and the bin of the response that 95 % of the interval's responses do not exceed."""

BEFORE = np.dtype(
    [("outputs", np.int64), ("response_max", np.float64), ("slowdown_max", np.float64)]
)


class Worth:
    """Measurements from the kernel's counts. AMoS asks often, so compiled code adds them up."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._before = np.zeros(len(world.results), dtype=BEFORE)
        self._bins_before = world.response_bins[-1].copy()
        self._sums_before = self._add_up()
        self._area_before = self._at_s = 0.0
        self._arrived = 0

    def measured(self, now_s: float) -> Measured:
        """Return the figures since the last time, by the names of a performance specification."""
        clock = self.world.clock[0]
        seconds = now_s - self._at_s
        sums = self._add_up()

        def since(name: str) -> float:
            return sums[name] - self._sums_before[name]

        outputs, judged = int(since("outputs")), int(since("judged"))
        windows = int(since("windows"))
        values = {
            "mean_response_s": since("response_sum") / outputs if outputs else nan,
            "max_response_s": sums["response_max"],
            "p95_response_s": SMALLEST * STEP ** (sums["p95_bin"] + 0.5) if outputs else nan,
            "norm_response_s": since("response_squares") ** 0.5,
            "mean_slowdown": since("slowdown_sum") / outputs if outputs else nan,
            "max_slowdown": sums["slowdown_max"],
            "norm_slowdown": since("slowdown_squares") ** 0.5,
            "output_per_s": outputs / seconds if seconds else nan,
            "pending": (float(clock["pending_area"]) - self._area_before) / (seconds or nan),
            "pending_bytes": float(clock["bytes"]),
            "qos": since("qos_sum") / judged if judged else nan,
            "staleness": since("stale_s") / (seconds * len(self._before)) if seconds else nan,
            "tardiness_s": since("tardy_sum") / windows if windows else nan,
        }
        self._sums_before = sums
        self._area_before, self._at_s = float(clock["pending_area"]), now_s
        arrived = int(self.world.streams["arrived"].sum())
        self._arrived, since_arrived = arrived, arrived - self._arrived
        full = with_waiting(values, outputs, self.world.table, now_s)
        return Measured(now_s, seconds, values, full, since_arrived, float(clock["pending"]))

    def _add_up(self) -> dict[str, float]:
        sums = np.zeros(len(SUMMED))
        _add_up(self.world, self._before, self._bins_before, sums)
        return dict(zip(SUMMED, sums.tolist(), strict=True))


@compiled
def _add_up(world: World, before: Records, bins_before: Ints, sums: Floats) -> None:
    """Fill `sums` with the values of `SUMMED`, and remember the counts for the next interval.

    A maximum is taken over the queries that had output in the interval and reached a new maximum.
    If none of them reached one, it is the mean of their maxima; NaN if there was no output.
    """
    grown, response_max, slowdown_max = 0, 0.0, 0.0
    outputs, passed, p95_bin = 0, 0, -1
    response_maxima = slowdown_maxima = 0.0
    for query in range(len(world.results)):
        row, old = world.results[query], before[query]
        for place, value in enumerate(
            (
                float(row.outputs), row.response_sum, row.response_squares, row.slowdown_sum,
                row.slowdown_squares, row.qos_sum,
                float(row.outputs) if row.qos_end > row.qos_first else 0.0,
                row.stale_s, row.tardy_sum, float(row.outputs) if row.by_clock else 0.0,
            )
        ):  # fmt: skip
            sums[place] += value
        if row.outputs > old.outputs:
            outputs += row.outputs - old.outputs
            grown += 1
            response_maxima += row.response_max
            slowdown_maxima += row.slowdown_max
            if row.response_max > old.response_max:
                response_max = max(response_max, row.response_max)
            if row.slowdown_max > old.slowdown_max:
                slowdown_max = max(slowdown_max, row.slowdown_max)
        old.outputs = row.outputs
        old.response_max, old.slowdown_max = row.response_max, row.slowdown_max
    if grown == 0:
        response_max = slowdown_max = np.nan
    elif response_max == 0.0:
        response_max = response_maxima / grown
    if grown > 0 and slowdown_max == 0.0:
        slowdown_max = slowdown_maxima / grown
    bins = world.response_bins[len(world.response_bins) - 1]
    for number in range(len(bins)):
        passed += bins[number] - bins_before[number]
        bins_before[number] = bins[number]
        if p95_bin < 0 and passed >= 0.95 * outputs:
            p95_bin = number
    place = len(sums) - 3
    sums[place], sums[place + 1], sums[place + 2] = response_max, slowdown_max, float(p95_bin)


def report_of(policy: str, world: World, units: Units) -> Report:
    """Return the report of a finished run."""
    network, clock = units.network, world.clock[0]
    began_s = float(world.order_at_s[0]) if len(world.order_at_s) else 0.0
    now_s = float(clock["now_s"])
    seconds = max(now_s - began_s, 0.0)
    lines = _Lines(world, units, seconds, now_s)
    count = len(network.paths)
    queries = [lines.line(path.query.name, [number]) for number, path in enumerate(network.paths)]
    classes = []
    for number, query_class in enumerate(network.classes):
        members = np.flatnonzero(world.results["query_class"] == number).tolist()
        classes.append(lines.line(query_class.name, members))
    total = lines.line("all", range(count), pending_max=int(clock["pending_max"]), whole=True)
    span_s = seconds or nan
    return Report(
        policy=policy,
        seconds=seconds,
        calls=int(clock["calls"]),
        scheduler_s=float(clock["scheduler_s"]),
        overhead_s=float(clock["overhead_s"]),
        total=total,
        classes=tuple(classes),
        queries=tuple(queries),
        pending_over_time=_class_samples(world),
        storage_s=float(clock["storage_s"]),
        decisions=int(clock["decisions"]),
        box_calls=int(clock["box_calls"]),
        utilisation=float(clock["busy_s"]) / (span_s * len(world.workers)),
        bytes_mean=float(clock["bytes_area"]) / span_s,
        bytes_max=float(clock["bytes_max"]),
        memory_mean=float(clock["shared_area"]) / span_s,
        memory_max=float(clock["shared_max"]),
        over_time=_samples(world),
    )


class _Lines:
    def __init__(self, world: World, units: Units, seconds: float, now_s: float) -> None:
        self._world, self._seconds, self._now_s = world, seconds, now_s
        self._weights = np.array([path.query.weight for path in units.network.paths])
        self._units_of: list[list[int]] = [[] for _ in units.network.paths]
        for shape in units.shapes:
            self._units_of[shape.query].append(shape.number)
        self._qos = delivered_qos(world, units)

    def line(
        self, name: str, queries: Sequence[int], pending_max: int | None = None, whole: bool = False
    ) -> Line:
        """Return the report line of some queries. A shared unit counts for its first query."""
        world, chosen = self._world, list(queries)
        rows = world.results[chosen]
        units = [unit for query in chosen for unit in self._units_of[query]]
        queues, table = world.queues[units], world.table[units]
        outputs = int(rows["outputs"].sum())
        bins = sorted(set(rows["row"].tolist()))
        sums = {}
        for key, counted in (("response", world.response_bins), ("slowdown", world.slowdown_bins)):
            sums[key] = Tally.of(
                outputs, float(rows[f"{key}_sum"].sum()), float(rows[f"{key}_squares"].sum()),
                float(rows[f"{key}_max"].max()) if len(rows) else 0.0,
                counted[bins].sum(axis=0),
            ).summary()  # fmt: skip
        windows = int(rows["outputs"][rows["by_clock"]].sum())
        worth, due = self._qos[:, chosen].sum(axis=1)
        weights, span_s = self._weights[chosen], self._seconds or nan
        stale = rows["stale_s"] / span_s
        expected = (rows["stale_s"] + [self._waits_s(number) for number in chosen]) / span_s
        area = (
            float(world.clock["pending_area"][0]) if whole else float(queues["pending_area"].sum())
        )
        return Line(
            name=name,
            tuples_in=int(queues["tuples_in"].sum()),
            response_s=sums["response"],
            slowdown=sums["slowdown"],
            pending=int(table["pending"].sum()),
            pending_mean=area / span_s,
            pending_max=int(queues["pending_max"].sum()) if pending_max is None else pending_max,
            busy_s=float(queues["busy_s"].sum()),
            output_per_s=outputs / span_s,
            staleness=float(stale.mean()) if len(rows) else nan,
            staleness_expected=float(expected.mean()) if len(rows) else nan,
            weighted_staleness=float(stale @ weights / weights.sum()) if weights.sum() else nan,
            tardiness_s=float(rows["tardy_sum"].sum()) / windows if windows else nan,
            tardiness_max_s=float(rows["tardy_max"].max()) if windows else nan,
            qos=float(worth / due) if due else nan,
            shed=int(queues["shed"].sum()),
        )

    def _waits_s(self, query: int) -> float:
        """Return how long tuples have waited that will be output, times the probability of it."""
        table = self._world.table[self._units_of[query]]
        table = table[table["pending"] > 0]
        if not len(table):
            return 0.0
        none_passes = (1.0 - np.minimum(table["selectivity"], 1.0)) ** table["pending"]
        begun_s = max(table["head_arrived_at_s"].min(), self._world.results["stale_until_s"][query])
        return float(1.0 - none_passes.prod()) * max(0.0, self._now_s - float(begun_s))


def _samples(world: World) -> tuple[tuple[float, ...], ...]:
    sample_s, rows = float(world.settings["sample_s"][0]), []
    for number, row in enumerate(world.samples):
        if row["seen"] or row["outputs"]:
            count = int(row["outputs"])
            means = [float(row[key]) / count if count else nan for key in _SUMS]
            # Queues are not sampled during one long call: NaN, since they may not have been empty.
            queued = [float(row[key]) if row["seen"] else nan for key in ("pending", "bytes")]
            rows.append((number * sample_s, *queued, count, *means))
    return tuple(rows)


_SUMS = ("response_sum", "slowdown_sum", "qos_sum")


def _class_samples(world: World) -> tuple[tuple[float, ...], ...]:
    sample_s = float(world.settings["sample_s"][0])
    seen = np.flatnonzero(world.samples["seen"])
    return tuple(
        (float(interval * sample_s), *world.class_samples[interval].tolist()) for interval in seen
    )
