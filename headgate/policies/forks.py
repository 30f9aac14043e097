"""Forks whose branches share their tuples: latency and memory by chart partitioning (BZ §4)."""

from collections.abc import Sequence
from functools import cache
from math import isnan

from headgate.model.network.unit_table import UnitTable
from headgate.model.network.units import Units
from headgate.policies.methods.charts import (
    ChartPolicy,
    Flow,
    Partition,
    flows,
    memory_drop,
    own_buffers,
    partitions_of,
    shared_buffer,
)
from headgate.policies.registry import register
from headgate.policies.structures.envelope import slope_of


@register(
    "oc",
    objective="mean response time of networks with shared operators",
    paper="BZ §4",
    use="Queries share operators and the mean response time over all results matters.",
    avoid="Nothing is shared: hr gives the same order at less cost.",
)
class OutputCompletion(ChartPolicy):
    """Slope of the output completion chart, σ / τ per piece, partitioned at forks (BZ §4).

    A path is never broken. A branch of a fork that gives results more slowly than the rest of its
    partition becomes its own partition. A component with a union or a join is not partitioned. Its
    slope is its average output rate (BZ §4.1): results over time, both weighted by arrival rates.

    Departs from the paper in what a component is: two graphs that only read the same stream are two
    components, because nothing is gained when they wait for each other.
    """

    def partitions(self, units: Units, table: UnitTable) -> list[Partition]:
        flow = flows(units, table)
        meeting = [component for component in _components(units) if _paths_meet(units, component)]
        whole = {unit for component in meeting for unit in component}
        entries = [
            (shape.number,) for shape in units.shapes if shape.streams and shape.number not in whole
        ]
        partitions = partitions_of(
            entries, flow, lambda readers: sum(flow[unit].outputs for unit in readers), own_buffers
        )
        return partitions + [_unpartitioned(units, flow, component) for component in meeting]


@register(
    "mr",
    objective="memory of buffers that queries share",
    paper="BZ §4",
    use="Many queries read the same streams from one buffer, and bursts must fit into memory.",
    avoid="Response time matters, or every query has its own buffer: see oc and chain.",
)
class MemoryReduction(ChartPolicy):
    """Slope of the memory reduction chart where branches of a fork share one buffer (BZ §4).

    A shared tuple is freed when the last branch has processed it. So the first operators of all
    branches are one fork segment that is never split; later segments that fall faster are joined to
    it. A stream that several units read is such a fork too. Inside a fork segment the unit that is
    furthest behind runs first, so that tuples are freed one after the other. Where paths meet, it
    works as Chain does.
    """

    def partitions(self, units: Units, table: UnitTable) -> list[Partition]:
        flow, streams = flows(units, table), range(len(units.network.streams))
        readers_by_stream = [
            tuple(shape.number for shape in units.shapes if stream in shape.streams)
            for stream in streams
        ]
        drop = memory_drop(flow, table["bytes_in"], shared_buffer)
        return partitions_of(
            [readers for readers in readers_by_stream if readers], flow, drop, shared_buffer
        )

    def value(self, selectivity: float, cost_s: float, ideal_s: float) -> float:
        """Return 1 / C̄: the whole input tuple leaves the system, or its result does."""
        return 1.0 / cost_s


def _components(units: Units) -> list[list[int]]:
    """Return the connected components: units that feed each other or run the same box."""
    units_by_box: dict[int, list[int]] = {}
    for shape in units.shapes:
        for stage in shape.stages:
            units_by_box.setdefault(stage.box, []).append(shape.number)
    components: list[list[int]] = []
    seen: set[int] = set()
    for shape in units.shapes:
        component, ahead = [], [shape.number]
        while ahead:
            unit = ahead.pop()
            if unit in seen:
                continue
            seen.add(unit)
            component.append(unit)
            ahead += [*units.shapes[unit].feeds, *units.shapes[unit].fed_by]
            ahead += [
                neighbor
                for stage in units.shapes[unit].stages
                for neighbor in units_by_box[stage.box]
            ]
        if component:
            components.append(sorted(component))
    return components


def _paths_meet(units: Units, component: Sequence[int]) -> bool:
    """Return True if a component has a union or a join."""
    shapes = [units.shapes[unit] for unit in component]
    boxes = [box for shape in shapes for box in {stage.box for stage in shape.stages}]
    several = any(len(shape.streams) + len(shape.fed_by) > 1 for shape in shapes)
    return several or len(set(boxes)) < len(boxes)


def _unpartitioned(units: Units, flow: Sequence[Flow], component: Sequence[int]) -> Partition:
    """Return a component as one partition, with its average output rate (BZ §4.1)."""

    @cache
    def arriving_per_s(unit: int) -> float:
        shape = units.shapes[unit]
        fed = (
            arriving_per_s(feeder) * tuples
            for feeder in shape.fed_by
            for readers, tuples in flow[feeder].onward
            if unit in readers
        )
        return _from_streams_per_s(units, unit) + sum(fed)

    outputs = sum(arriving_per_s(unit) * flow[unit].outputs for unit in component)
    work_s = sum(arriving_per_s(unit) * flow[unit].cost_s for unit in component)
    return Partition(tuple(component), work_s, outputs, slope_of(work_s, outputs))


def _from_streams_per_s(units: Units, unit: int) -> float:
    """Return the tuples per second that a unit gets from streams; 1 per stream if unknown."""
    shape, graph = units.shapes[unit], units.graph
    if not shape.streams:
        return 0.0
    boxes = graph.nodes[shape.box].boxes[shape.side]
    rate_per_s = graph.input_per_s(shape.box, shape.side) - sum(map(graph.output_per_s, boxes))
    return float(len(shape.streams)) if isnan(rate_per_s) else rate_per_s
