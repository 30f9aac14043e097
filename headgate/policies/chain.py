"""Chain: the steepest fall of memory first (AMoS §2.1, BZ §3)."""

from headgate.model.network.unit_table import UnitTable
from headgate.model.network.units import Units
from headgate.policies.methods.charts import (
    ChartPolicy,
    Partition,
    flows,
    memory_drop,
    own_buffers,
    partitions_of,
)
from headgate.policies.registry import register


@register(
    "chain",
    objective="memory",
    paper="AMoS §2.1, BZ §3",
    use="Bursts must fit into memory, and results may come late.",
    avoid="Response time matters: in a burst, the last operators of all paths wait for the first.",
)
class Chain(ChartPolicy):
    """Slope of the lower envelope of the memory chart, (M_in − σ M_out) / τ per piece (BZ §3).

    Operators on one segment of the envelope share its slope. Results leave the system and count 0
    bytes, so a unit that runs a whole query has the slope bytes / C̄. Each branch of a fork has its
    own buffer and its own chart; the operator before the fork is joined with the branches that fall
    fast enough. Where paths meet, in a union or a join, each path has its own chart, and the
    operators that they share run with the steepest. BZ §4.1 leaves this case to Chain's own paper.
    """

    def partitions(self, units: Units, table: UnitTable) -> list[Partition]:
        flow = flows(units, table)
        entries = [(shape.number,) for shape in units.shapes if shape.streams]
        drop = memory_drop(flow, table["bytes_in"], own_buffers)
        return partitions_of(entries, flow, drop, own_buffers)

    def value(self, selectivity: float, cost_s: float, ideal_s: float) -> float:
        """Return 1 / C̄: the whole input tuple leaves the system, or its result does."""
        return 1.0 / cost_s
