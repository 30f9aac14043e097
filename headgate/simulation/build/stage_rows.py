"""The boxes of units as rows of a world: stages, windows of joins, and drift."""

import numpy as np

from headgate.model.arrays import Floats
from headgate.model.network.units import Units
from headgate.simulation.build.closing_rows import Closings
from headgate.simulation.world.links import Links
from headgate.simulation.world.records import AGGREGATE, JOIN, NONE, SELECT, STAGE, WINDOW, Records
from headgate.simulation.world.setting import Setting
from headgate.workloads.random_hash import DRAWS


def stages_of(
    units: Units,
    links: Links,
    setting: Setting,
    floats: list[Floats],
    closings: Closings,
) -> tuple[Records, Records]:
    """Return a row for every box of every unit, and a row for the window of every join."""
    graph, network = units.graph, units.network
    stages = np.zeros(sum(len(shape.stages) for shape in units.shapes), dtype=STAGE)
    joins = [node.number for node in graph.nodes if node.operator.kind == "join"]
    windows = np.zeros(max(1, len(joins)), dtype=WINDOW)
    for key in ("left_head", "left_tail", "right_head", "right_tail"):
        windows[key] = NONE
    for number, box in enumerate(joins):
        windows["window_s"][number] = graph.nodes[box].operator.window_s
        windows["left_in_order"][number] = in_order(units, box, 0)
        windows["right_in_order"][number] = in_order(units, box, 1)
    position = 0
    place_of: dict[str, int] = {}

    def add_floats(name: str, values: Floats) -> int:
        if name not in place_of:
            place_of[name] = sum(map(len, floats))
            floats.append(np.asarray(values, dtype=np.float64))
        return place_of[name]

    for shape in units.shapes:
        first = position
        query = network.paths[shape.query].query.name
        for stage in shape.stages:
            node, row = graph.nodes[stage.box], stages[position]
            kind = node.operator.kind
            row["kind"] = {"join": JOIN, "aggregate": AGGREGATE}.get(kind, SELECT)
            row["box"], row["side"] = stage.box, stage.side
            row["parent"] = NONE if stage.parent < 0 else first + stage.parent
            row["cost_s"], row["random_key"] = node.cost_s, node.random_key
            selectivity = node.operator.selectivity
            row["selectivity"] = 1.0 if selectivity is None else selectivity
            row["join"] = joins.index(stage.box) if kind == "join" else NONE
            row["closing"] = closings.number_by_box.get(stage.box, NONE)
            row["closing_first"], row["closing_end"] = links.add(closings.by_clock(stage.box))
            row["drift"] = row["costs"] = row["fates"] = row["child"] = row["sibling"] = NONE
            for name in (node.name, query):
                if name in setting.tuple_costs and (name == node.name or len(shape.stages) == 1):
                    row["costs"] = add_floats(f"cost {name}", setting.tuple_costs[name])
            if node.name.split(".")[0] in setting.fates:  # a box of this query only
                row["selectivity"] = 1.0
            for reader in (network.paths[number].query.name for number in stage.queries):
                if reader in setting.fates:
                    fates = np.asarray(setting.fates[reader], dtype=np.float64)
                    row["selectivity"], row["fates"] = 1.0, add_floats(f"fate {reader}", fates)
            row["query_first"], row["query_end"] = links.add(list(stage.queries))
            row["fill_first"], row["fill_end"] = links.add(list(stage.fills))
            if row["parent"] != NONE:
                _append_child(stages, int(row["parent"]), position)
            position += 1
    stages["below"] = np.ceil(np.minimum(stages["selectivity"], 1.0) * DRAWS)
    return stages, windows


def in_order(units: Units, box: int, side: int) -> bool:
    """Return True if tuples always reach a side of a box in the order of their arrival."""
    node = units.graph.nodes[box]
    if not node.boxes[side]:
        return True
    if node.streams[side] or len(node.boxes[side]) > 1:
        return False
    before = units.graph.nodes[node.boxes[side][0]]
    merged = before.operator.kind == "union" and units.level == "operator"
    if before.operator.kind == "join" or (before.sides > 1 and not merged):
        return False
    return all(in_order(units, before.number, number) for number in range(before.sides))


def _append_child(stages: Records, parent: int, child: int) -> None:
    last = stages["child"][parent]
    if last == NONE:
        stages["child"][parent] = child
        return
    while stages["sibling"][last] != NONE:
        last = stages["sibling"][last]
    stages["sibling"][last] = child


def drift_of(units: Units, stages: Records, setting: Setting) -> "np.typing.NDArray[np.float64]":
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
        values = np.asarray(setting.selectivities[name], dtype=np.float64)
        table[number] = np.concatenate([values, np.full(longest - len(values), values[-1])])
    return table
