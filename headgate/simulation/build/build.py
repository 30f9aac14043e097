"""The builder of a world's arrays from units, arrivals and settings."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from headgate.compiled import compiled
from headgate.errors import ConfigRefused
from headgate.metrics.tally import BINS
from headgate.model.arrays import Floats
from headgate.model.network.unit_table import UnitTable
from headgate.model.network.units import Units
from headgate.model.plan import ALL
from headgate.simulation.build.closing_rows import closings_of
from headgate.simulation.build.figure_rows import figures_of
from headgate.simulation.build.input_checks import (
    check_arrivals,
    check_figures,
    check_setting,
    check_single_tuples,
)
from headgate.simulation.build.queue_rows import queues_of
from headgate.simulation.build.result_rows import results_of
from headgate.simulation.build.stage_rows import drift_of, stages_of
from headgate.simulation.kernel.memory import store
from headgate.simulation.kernel.queues import append, new_entry
from headgate.simulation.world.links import Links
from headgate.simulation.world.records import (
    CLOCK,
    ENTRY,
    NONE,
    SAMPLE,
    SETTINGS,
    STREAM,
    WORKER,
    Records,
)
from headgate.simulation.world.setting import Setting
from headgate.simulation.world.world import World

SAMPLES = 400


def build(
    units: Units, table: UnitTable, arrivals: Mapping[str, Floats], setting: Setting
) -> World:
    """Return the world before its first instant.

    Raises:
        ConfigRefused: arrivals are out of order, a name in the setting is unknown, a box has no
            cost.
    """
    network, links = units.network, Links()
    times = [arrivals.get(stream.name, np.zeros(0)) for stream in network.streams]
    check_arrivals(units, arrivals, times)
    check_figures(units)
    check_setting(
        units, selectivities=setting.selectivities, tuple_costs=setting.tuple_costs,
        fates=setting.fates, preloaded=setting.preloaded,
    )  # fmt: skip
    check_single_tuples(units, setting, times)
    ends_s = max([float(times_s[-1]) for times_s in times if len(times_s)], default=0.0)
    floats: list[Floats] = []
    figures, courses = figures_of(units, links)
    closings = closings_of(units, links, ends_s)
    stages, windows = stages_of(units, links, setting, floats, closings)
    results = results_of(units, table, floats)
    queues = queues_of(units, links, table, closings, stages, courses)
    streams = _streams(units, links, times)
    queues["source"] = streams["first"][np.maximum(queues["stream"], 0)]
    merges = links.add([u for u in range(len(units)) if queues["merge_end"][u] > 0])
    order, order_at_s = _order(times)
    drift = drift_of(units, stages, setting)
    rows = int(results["row"].max()) + 1 if len(results) else 1
    work_s = _work_s(units, table, times, setting.preloaded)
    sample_s = max(ends_s, work_s / setting.workers, 1e-9) / SAMPLES
    settings = _settings(setting, merges, sample_s)
    # One array for both is large enough for NumPy to request large pages: fewer TLB misses.
    bins = np.zeros((2 * rows + 1, BINS), dtype=np.int32)
    waiting = sum(setting.preloaded.values())
    pool = np.zeros(1024 + 4 * len(units) + waiting, dtype=ENTRY)
    clock = np.zeros(1, dtype=CLOCK)
    clock["chosen"] = NONE
    clock["closes_at_s"] = closings.rows["due_at_s"].min(initial=np.inf)
    in_order = windows["left_in_order"] & windows["right_in_order"]
    clock["forget_at"] = 1024 if np.any((windows["window_s"] > 0) & ~in_order) else 0
    pool["next"] = np.arange(1, len(pool) + 1)
    classes = len(network.classes)
    workers = np.zeros(setting.workers, dtype=WORKER)
    workers["unit"] = workers["head"] = workers["tail"] = NONE
    workers["ends_at_s"] = np.inf
    if setting.foresight:
        table["pending_outputs"] = table["pending_s"] = 0.0
    return World(
        settings=settings,
        clock=clock,
        table=table,
        queues=queues,
        stages=stages,
        figures=figures,
        pool=pool,
        windows=windows,
        closings=closings.rows,
        streams=streams,
        results=results,
        workers=workers,
        samples=np.zeros(4 * SAMPLES, dtype=SAMPLE),
        class_pending=np.zeros(classes, dtype=np.int64),
        class_samples=np.zeros((4 * SAMPLES, classes), dtype=np.int64),
        links=np.array(links.numbers or [0], dtype=np.int64),
        changed=np.zeros(len(units), dtype=np.int64),
        arrivals=np.concatenate([*times, np.zeros(1)]),
        order=order,
        order_at_s=order_at_s,
        holders=np.zeros(sum(map(len, times)) + 1, dtype=np.int32),
        left_s=np.zeros(sum(map(len, times)) + 1),
        late_s=closings.late_s,
        floats=np.concatenate([*floats, np.zeros(1)]),
        drift=drift,
        shed=np.zeros((1, 1)),
        response_bins=bins[: rows + 1],
        slowdown_bins=bins[rows + 1 :],
        kept=np.zeros(3 * 4096 if setting.keep else 3),
        stack=np.zeros(256, dtype=ENTRY),
    )


def grown(world: World) -> World:
    """Return the world with twice the room in its pool, stack and list of responses."""
    pool = np.zeros(2 * len(world.pool), dtype=ENTRY)
    pool[: len(world.pool)] = world.pool
    first = len(world.pool)
    # The new half goes in front of the free list; its last entry points to the old free list.
    pool["next"][first:] = np.arange(first + 1, len(pool) + 1)
    pool["next"][-1] = world.clock["free"][0]
    world.clock["free"] = first
    stack = np.zeros(2 * len(world.stack), dtype=ENTRY)
    responses = np.zeros(2 * len(world.kept))
    responses[: len(world.kept)] = world.kept
    return replace(world, pool=pool, stack=stack, kept=responses)


def preload(world: World, units: Units, setting: Setting) -> None:
    """Add the tuples that wait at the start to the queues of their boxes."""
    by_name = {units.graph.nodes[shape.box].name: shape.number for shape in units.shapes}
    for name, count in setting.preloaded.items():
        if name not in by_name:
            expected = "the name of a box with a queue"
            raise ConfigRefused(
                path="simulation, preloaded", key="name", value=name, expected=expected
            )
        world.queues["stream"][by_name[name]] = NONE  # a list holds them, not a cursor
        for number in range(count):
            wait(world, by_name[name], number)


@compiled
def wait(world: World, unit: int, number: int) -> None:
    """Add a tuple of instant 0 to a unit's queue."""
    entry = new_entry(world)
    slot = world.pool[entry]
    slot.arrived_at_s = slot.ideal_at_s = slot.queued_at_s = 0.0
    slot.number, slot.mass, slot.owner, slot.holders = number, 1.0, entry, 1
    store(world, 1)
    append(world, unit, entry)


def _work_s(
    units: Units, table: UnitTable, times: list[Floats], preloaded: Mapping[str, int]
) -> float:
    """Return the expected work of all tuples: a run lasts as long even if all come at once."""
    costs_s = np.nan_to_num(table["cost_s"])
    streams = [(shape.number, stream) for shape in units.shapes for stream in shape.streams]
    work_s = float(sum(costs_s[unit] * len(times[stream]) for unit, stream in streams))
    names = [units.graph.nodes[shape.box].name for shape in units.shapes]
    waiting = [preloaded.get(name, 0) for name in names]
    return work_s + float(costs_s @ np.array(waiting, dtype=np.float64))


def _order(times: list[Floats]) -> tuple["np.typing.NDArray[np.int32]", Floats]:
    streams = np.repeat(np.arange(len(times), dtype=np.int32), [len(times_s) for times_s in times])
    at_s = np.concatenate(times) if times else np.zeros(0)
    order = np.argsort(at_s, kind="stable")
    return streams[order], at_s[order]


def _streams(units: Units, links: Links, times: list[Floats]) -> Records:
    streams = np.zeros(len(times), dtype=STREAM)
    readers: list[list[int]] = [[] for _ in times]
    for shape in units.shapes:
        for stream in shape.streams:
            readers[stream].append(shape.number)
    first = 0
    for number, times_s in enumerate(times):
        row = streams[number]
        row["first"], first = first, first + len(times_s)
        row["reader_first"], row["reader_end"] = links.add(readers[number])
    return streams


def _settings(setting: Setting, merges: tuple[int, int], sample_s: float) -> Records:
    settings = np.zeros(1, dtype=SETTINGS)
    for name in SETTINGS.names or ():
        if hasattr(setting, name):
            settings[name] = getattr(setting, name)
    settings["train_tuples"] = min(setting.train_tuples, ALL)
    settings["drift_s"], settings["sample_s"] = setting.interval_s, sample_s
    settings["merge_first"], settings["merge_end"] = merges
    return settings
