"""From units, arrivals and settings to the arrays of a world."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from headgate.compiled import compiled
from headgate.errors import ConfigRefused
from headgate.metrics.tally import BINS
from headgate.model.events import Floats
from headgate.model.plan import ALL
from headgate.model.unit_table import UnitTable
from headgate.model.units import Units
from headgate.simulation.queues import append, new_entry
from headgate.simulation.refusals import check_aggregates, check_figures, check_setting
from headgate.simulation.setting import Setting
from headgate.simulation.world import (
    AGGREGATE,
    CLOCK,
    ENTRY,
    FIGURE,
    JOIN,
    NONE,
    QUEUE,
    RESULT,
    SAMPLE,
    SELECT,
    SETTINGS,
    STAGE,
    STREAM,
    WINDOW,
    WORKER,
    World,
)

SAMPLES = 400
MOST_ROWS = 4096
"""Queries beyond this many share the histograms of their class."""


class Links:
    """Lists of numbers, one behind the other in one array."""

    def __init__(self) -> None:
        self.numbers: list[int] = []

    def add(self, numbers: Sequence[int]) -> tuple[int, int]:
        first = len(self.numbers)
        self.numbers += numbers
        return first, len(self.numbers)


def build(
    units: Units, table: UnitTable, arrivals: Mapping[str, Floats], setting: Setting
) -> World:
    """Gives the world before its first instant.

    Raises:
        ConfigRefused: arrivals are out of order, a name in the setting is unknown, a box has no
            cost, or windows close where the simulation cannot follow.
    """
    network, links = units.network, Links()
    times = [arrivals.get(stream.name, np.zeros(0)) for stream in network.streams]
    _check_arrivals(units, arrivals, times)
    check_figures(units)
    check_aggregates(units)
    check_setting(
        units, selectivities=setting.selectivities, tuple_costs=setting.tuple_costs,
        fates=setting.fates, preloaded=setting.preloaded,
    )  # fmt: skip
    _check_single_tuples(units, setting, times)
    ends_s = max([float(each[-1]) for each in times if len(each)], default=0.0)
    floats: list[Floats] = []
    figure_of, figures = _figures(units, links)
    stages, windows = _stages(units, links, setting, floats, figure_of)
    results, late_s = _results(units, table, setting, floats, ends_s)
    queues = _queues(units, links, table, results, stages, figure_of)
    merges = links.add([u for u in range(len(units)) if queues["merge_end"][u] > 0])
    order, order_at_s = _order(times)
    drift = _drift(units, stages, setting)
    rows = int(results["row"].max()) + 1 if len(results) else 1
    sample_s = max(ends_s, _work_s(units, table, times) / setting.workers, 1e-9) / SAMPLES
    settings = _settings(setting, merges, sample_s)
    waiting = sum(setting.preloaded.values())
    pool = np.zeros(1024 + 4 * len(units) + waiting, dtype=ENTRY)
    clock = np.zeros(1, dtype=CLOCK)
    clock["chosen"] = NONE
    in_order = windows["left_in_order"] & windows["right_in_order"]
    clock["forget_at"] = 1024 if np.any((windows["window_s"] > 0) & ~in_order) else 0
    pool["next"] = np.arange(1, len(pool) + 1)
    classes = len(network.classes)
    workers = np.zeros(setting.workers, dtype=WORKER)
    workers["unit"], workers["ends_at_s"] = NONE, np.inf
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
        streams=_streams(units, links, times),
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
        late_s=late_s,
        floats=np.concatenate([*floats, np.zeros(1)]),
        drift=drift,
        shed=np.zeros((1, 1)),
        response_bins=np.zeros((rows + 1, BINS), dtype=np.int32),
        slowdown_bins=np.zeros((rows, BINS), dtype=np.int32),
        kept=np.zeros(3 * 4096 if setting.keep else 3),
        stack=np.zeros(256, dtype=ENTRY),
    )


def grown(world: World) -> World:
    """Gives the world with twice the room, everything in its place."""
    pool = np.zeros(2 * len(world.pool), dtype=ENTRY)
    pool[: len(world.pool)] = world.pool
    first = len(world.pool)
    # The new half goes in front of the free list; its last entry leads on to what was free before.
    pool["next"][first:] = np.arange(first + 1, len(pool) + 1)
    pool["next"][-1] = world.clock["free"][0]
    world.clock["free"] = first
    stack = np.zeros(2 * len(world.stack), dtype=ENTRY)
    kept = np.zeros(2 * len(world.kept))
    kept[: len(world.kept)] = world.kept
    return replace(world, pool=pool, stack=stack, kept=kept)


def preload(world: World, units: Units, setting: Setting) -> None:
    """Puts the tuples that wait at the start into the queues of their boxes."""
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
    """Puts a tuple of instant 0 into a unit's queue."""
    entry = new_entry(world)
    slot = world.pool[entry]
    slot.arrived_at_s = slot.ideal_at_s = slot.queued_at_s = 0.0
    slot.number, slot.mass, slot.owner, slot.holders = number, 1.0, entry, 1
    slot.bytes = world.table[unit].bytes_in
    clock = world.clock[0]
    clock.shared += 1
    clock.shared_max = max(clock.shared_max, clock.shared)
    clock.shared_bytes += slot.bytes
    append(world, unit, entry)


def _check_arrivals(units: Units, arrivals: Mapping[str, Floats], times: list[Floats]) -> None:
    for name in arrivals:
        units.network.stream_number(name, where="arrivals")
    for stream, times_s in zip(units.network.streams, times, strict=True):
        where = f"stream '{stream.name}'"
        if len(times_s) and not (np.isfinite(times_s).all() and times_s[0] >= 0):
            expected = "finite instants from 0 seconds on"
            raise ConfigRefused(path=where, key="arrivals", value=None, expected=expected)
        if len(times_s) > 1 and np.any(np.diff(times_s) < 0):
            expected = "in ascending order of time"
            raise ConfigRefused(path=where, key="arrivals", value=None, expected=expected)


def _check_single_tuples(units: Units, setting: Setting, times: list[Floats]) -> None:
    """Refuses costs or outcomes of single tuples that are fewer than the tuples."""
    network, most = units.network, max(map(len, times), default=0)
    plain = {path.query.name: path.stream for path in network.paths if path.output is None}
    for key, given in (("fates", setting.fates), ("tuple_costs", setting.tuple_costs)):
        for name, values in given.items():
            stream = plain.get(name.split(".")[0])
            offered = most if stream is None else len(times[network.stream_number(stream)])
            if len(values) < offered:
                expected = f"one for each of the {offered} tuples"
                raise ConfigRefused(
                    path=f"query '{name}'", key=key, value=len(values), expected=expected
                )


def _work_s(units: Units, table: UnitTable, times: list[Floats]) -> float:
    """Gives the expected work of all tuples: a run lasts as long, though all may come at once."""
    costs_s = np.nan_to_num(table["cost_s"])
    streams = [(shape.number, stream) for shape in units.shapes for stream in shape.streams]
    return float(sum(costs_s[unit] * len(times[stream]) for unit, stream in streams))


def _order(times: list[Floats]) -> tuple["np.typing.NDArray[np.int32]", Floats]:
    streams = np.repeat(np.arange(len(times), dtype=np.int32), [len(each) for each in times])
    at_s = np.concatenate(times) if times else np.zeros(0)
    order = np.argsort(at_s, kind="stable")
    return streams[order], at_s[order]


def _streams(units: Units, links: Links, times: list[Floats]) -> "np.typing.NDArray[np.void]":
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
        row["bytes"] = units.network.streams[number].tuple_bytes
    return streams


def _figures(
    units: Units, links: Links
) -> tuple[dict[tuple[int, int], int], "np.typing.NDArray[np.void]"]:
    """Gives a place for what is measured of every side of every box, and the units it concerns."""
    graph = units.graph
    number_of = {(node.number, side): 0 for node in graph.nodes for side in range(node.sides)}
    for number, key in enumerate(number_of):
        number_of[key] = number
    figures = np.zeros(len(number_of), dtype=FIGURE)
    concerned: list[list[int]] = [[] for _ in number_of]
    for shape in units.shapes:
        for key in units.way_of(shape.number):
            concerned[number_of[key]].append(shape.number)
    for key, number in number_of.items():
        figures["cost_s"][number] = graph.nodes[key[0]].cost_s
        figures["selectivity"][number] = graph.selectivity(*key)
        figures["unit_first"][number], figures["unit_end"][number] = links.add(concerned[number])
    return number_of, figures


def _stages(
    units: Units,
    links: Links,
    setting: Setting,
    floats: list[Floats],
    figure_of: Mapping[tuple[int, int], int],
) -> tuple["np.typing.NDArray[np.void]", "np.typing.NDArray[np.void]"]:
    graph, network = units.graph, units.network
    stages = np.zeros(sum(len(shape.stages) for shape in units.shapes), dtype=STAGE)
    joins = [node.number for node in graph.nodes if node.operator.kind == "join"]
    windows = np.zeros(max(1, len(joins)), dtype=WINDOW)
    for key in ("left_head", "left_tail", "right_head", "right_tail"):
        windows[key] = NONE
    for number, box in enumerate(joins):
        windows["window_s"][number] = graph.nodes[box].operator.window_s
        windows["left_in_order"][number] = _in_order(units, box, 0)
        windows["right_in_order"][number] = _in_order(units, box, 1)
    at = 0
    place_of: dict[str, int] = {}

    def kept(name: str, values: Floats) -> int:
        if name not in place_of:
            place_of[name] = sum(map(len, floats))
            floats.append(np.asarray(values, dtype=np.float64))
        return place_of[name]

    for shape in units.shapes:
        first = at
        query = network.paths[shape.query].query.name
        for stage in shape.stages:
            node, row = graph.nodes[stage.box], stages[at]
            kind = node.operator.kind
            row["kind"] = {"join": JOIN, "aggregate": AGGREGATE}.get(kind, SELECT)
            row["box"], row["side"] = stage.box, stage.side
            row["parent"] = NONE if stage.parent < 0 else first + stage.parent
            row["cost_s"], row["luck"] = node.cost_s, node.luck
            own = node.operator.selectivity
            row["selectivity"] = 1.0 if own is None else own
            row["figure"] = figure_of[stage.box, stage.side]
            row["join"] = joins.index(stage.box) if kind == "join" else NONE
            row["drift"] = row["costs"] = row["fates"] = row["child"] = row["sibling"] = NONE
            for name in (node.name, query):
                if name in setting.tuple_costs and (name == node.name or len(shape.stages) == 1):
                    row["costs"] = kept(f"cost {name}", setting.tuple_costs[name])
            if node.name.split(".")[0] in setting.fates:  # a box of the query's own
                row["selectivity"] = 1.0
            for told in (network.paths[number].query.name for number in stage.queries):
                if told in setting.fates:
                    fates = np.asarray(setting.fates[told], dtype=np.float64)
                    row["selectivity"], row["fates"] = 1.0, kept(f"fate {told}", fates)
            row["query_first"], row["query_end"] = links.add(list(stage.queries))
            row["fill_first"], row["fill_end"] = links.add(list(stage.fills))
            row["bytes_out"] = node.operator.bytes_out
            if row["parent"] != NONE:
                _append_child(stages, int(row["parent"]), at)
            at += 1
    return stages, windows


def _in_order(units: Units, box: int, side: int) -> bool:
    """Tells whether tuples reach a side of a box in the order of their arrival, in every run."""
    node = units.graph.nodes[box]
    if not node.boxes[side]:
        return True
    if node.streams[side] or len(node.boxes[side]) > 1:
        return False
    before = units.graph.nodes[node.boxes[side][0]]
    merged = before.operator.kind == "union" and units.level == "operator"
    if before.operator.kind == "join" or (before.sides > 1 and not merged):
        return False
    return all(_in_order(units, before.number, each) for each in range(before.sides))


def _append_child(stages: "np.typing.NDArray[np.void]", parent: int, child: int) -> None:
    last = stages["child"][parent]
    if last == NONE:
        stages["child"][parent] = child
        return
    while stages["sibling"][last] != NONE:
        last = stages["sibling"][last]
    stages["sibling"][last] = child


def _results(
    units: Units, table: UnitTable, setting: Setting, floats: list[Floats], ends_s: float
) -> tuple["np.typing.NDArray[np.void]", Floats]:
    network, graph = units.network, units.graph
    results = np.zeros(len(network.paths), dtype=RESULT)
    results["stale_until_s"] = results["since_s"] = -np.inf
    windows = 0
    overheads = {(s.box, s.side): float(table["overhead_s"][s.number]) for s in units.shapes}
    for node in graph.nodes:
        for query in node.queries:
            row = results[query]
            row["ideal_s"] = _ideal_s(units, overheads, node.number)
            if node.operator.kind == "aggregate":
                row["slide_s"] = node.operator.slide_s
                row["range_s"] = node.operator.range_s
                latest_s = ends_s + float(row["range_s"]) + float(row["slide_s"])
                row["pane_first"] = windows
                windows += int(latest_s / float(row["slide_s"])) + 1
                row["pane_end"] = windows
    place = sum(map(len, floats))
    for number, path in enumerate(network.paths):
        row = results[number]
        row["query_class"] = network.class_number(path.query.query_class)
        row["row"] = number if len(results) <= MOST_ROWS else row["query_class"]
        if path.query.qos is not None:
            floats.append(np.array(path.query.qos.points).ravel())
            row["qos_first"], row["qos_end"] = place, place + len(floats[-1])
            place += len(floats[-1])
    return results, np.zeros(windows + 1)


def _ideal_s(units: Units, overheads: Mapping[tuple[int, int], float], box: int) -> float:
    """Gives T of what a box gives out, the overhead of the calls it takes included."""
    node = units.graph.nodes[box]
    sides = []
    for side, boxes in enumerate(node.boxes):
        below = max([_ideal_s(units, overheads, each) for each in boxes], default=0.0)
        sides.append(below + node.cost_s + overheads.get((box, side), 0.0))
    return sum(sides) if node.operator.kind == "join" else max(sides)


def _queues(
    units: Units,
    links: Links,
    table: UnitTable,
    results: "np.typing.NDArray[np.void]",
    stages: "np.typing.NDArray[np.void]",
    figure_of: Mapping[tuple[int, int], int],
) -> "np.typing.NDArray[np.void]":
    queues = np.zeros(len(units), dtype=QUEUE)
    queues["head"] = queues["tail"] = queues["pane_query"] = NONE
    queues["active"] = True
    queues["stream"] = table["stream"]
    queues["seen_s"] = -np.inf
    at = 0
    for shape in units.shapes:
        row, count = queues[shape.number], len(shape.stages)
        own = stages[at : at + count]
        row["first_stage"], row["stages"] = at, count
        straight = all(own["parent"][1:] == np.arange(at, at + count - 1))
        inside = own[:-1]
        plain = np.all(own["kind"] != JOIN) and np.all(own["selectivity"] <= 1.0)
        silent = np.all(inside["query_end"] == inside["query_first"])
        silent = silent and np.all(inside["fill_end"] == inside["fill_first"])
        row["line"] = straight and plain and silent and not np.any(inside["kind"] == AGGREGATE)
        inputs = [(join, side) for join, side in zip(own["join"], own["side"], strict=True)]
        row["meets_itself"] = any((join, 1 - side) in inputs for join, side in inputs if join >= 0)
        row["luck"] = own["luck"][0]
        way = units.way_of(shape.number)
        row["first_figure"], end = links.add([figure_of[key] for key in way])
        row["figures"] = end - row["first_figure"]
        _aggregate(units, shape.number, row, results)
        row["merge_first"], row["merge_end"] = _merge_inputs(units, links, shape.number)
        at += count
    return queues


def _aggregate(
    units: Units, unit: int, row: np.void, results: "np.typing.NDArray[np.void]"
) -> None:
    for segment in units.shapes[unit].segments:
        if results["slide_s"][segment.query] > 0.0:
            row["pane_query"], row["slide_s"] = segment.query, results["slide_s"][segment.query]


def _merge_inputs(units: Units, links: Links, unit: int) -> tuple[int, int]:
    """Lists the other inputs of an ordered union, each with the units ahead of it; else nothing."""
    shape = units.shapes[unit]
    node = units.graph.nodes[shape.box]
    if units.level != "operator" or node.operator.kind != "union" or node.sides < 2:
        return 0, 0
    numbers: list[int] = []
    for other in units.shapes:
        if other.box == shape.box and other.side != shape.side:
            ahead: list[int] = []
            left = list(other.fed_by)
            while left:
                ahead.append(left.pop())
                left += [each for each in units.shapes[ahead[-1]].fed_by if each not in ahead]
            numbers += [other.number, len(ahead), *ahead]
    return links.add(numbers)


def _drift(
    units: Units, stages: "np.typing.NDArray[np.void]", setting: Setting
) -> "np.typing.NDArray[np.float64]":
    if not setting.selectivities:
        return np.zeros((1, 1))
    names = list(setting.selectivities)
    row_of = {units.graph.nodes[b].name: b for b in range(len(units.graph.nodes))}
    box_row = {row_of[name]: number for number, name in enumerate(names)}
    for stage in stages:
        stage["drift"] = box_row.get(int(stage["box"]), NONE)
    longest = max(len(setting.selectivities[name]) for name in names)
    table = np.zeros((len(names), longest))
    for number, name in enumerate(names):
        own = np.asarray(setting.selectivities[name], dtype=np.float64)
        table[number] = np.concatenate([own, np.full(longest - len(own), own[-1])])
    return table


def _settings(
    setting: Setting, merges: tuple[int, int], sample_s: float
) -> "np.typing.NDArray[np.void]":
    settings = np.zeros(1, dtype=SETTINGS)
    for name in SETTINGS.names or ():
        if hasattr(setting, name):
            settings[name] = getattr(setting, name)
    settings["train_tuples"] = min(setting.train_tuples, ALL)
    settings["drift_s"], settings["sample_s"] = setting.interval_s, sample_s
    settings["merge_first"], settings["merge_end"] = merges
    return settings
