"""Superboxes and the orders in which their boxes are called (Aurora §4.1.2)."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isnan, prod

from headgate.model.unit_table import UnitTable
from headgate.model.units import Units

Order = Callable[["Superbox", UnitTable, Collection[int]], Sequence[int]]
"""Gives the calls of a traversal, by what the boxes cost and which of them have tuples."""


@dataclass(frozen=True)
class Superbox:
    """The units that work for one output: a tree whose root gives out results (Aurora §4.1).

    Args:
        units: in post order, so that each comes after all that feed it.
        downstream: D(b), from b itself to the root.
        feeds: the units of the superbox whose queues a unit fills.
        outputs: those that give out results.
    """

    units: tuple[int, ...]
    downstream: Mapping[int, tuple[int, ...]]
    feeds: Mapping[int, tuple[int, ...]]
    outputs: frozenset[int]


def superboxes_of(units: Units) -> tuple[Superbox, ...]:
    """Gives one superbox an application (Aurora §4.1.1); queries with the same tree share one.

    A unit that several queries share is part of the superbox of each.
    """
    queries_by_tree: dict[tuple[int, ...], list[int]] = {}
    for query in range(len(units.network.paths)):
        tree = tuple(shape.number for shape in units.shapes if query in shape.queries)
        if tree:
            queries_by_tree.setdefault(tree, []).append(query)
    return tuple(_superbox(units, *each) for each in queries_by_tree.items())


def min_cost(superbox: Superbox, table: UnitTable, waiting: Collection[int]) -> list[int]:
    """Post order: every box once, after all that feed it (MC)."""
    reached = {unit for first in waiting for unit in superbox.downstream[first]}
    return [unit for unit in superbox.units if unit in reached]


def min_latency(superbox: Superbox, table: UnitTable, waiting: Collection[int]) -> list[int]:
    """Boxes in ascending order of output cost, each followed by all that is downstream (ML)."""
    ranked = sorted(waiting, key=lambda unit: (output_cost_s(superbox, table, unit), unit))
    return [unit for first in ranked for unit in superbox.downstream[first]]


def min_memory(superbox: Superbox, table: UnitTable, waiting: Collection[int]) -> list[int]:
    """Again and again the box with tuples that frees the most memory a second (MM).

    Departs from the text, which takes the order "as in ML", and follows its example. A box that was
    called is expected to have filled the next queue; where it did not, that call falls out.
    """
    rates = {
        unit: reduction_per_s(table, unit)
        for unit in {each for first in waiting for each in superbox.downstream[first]}
    }
    filled, calls = set(waiting), []
    while filled:
        best = min(filled, key=lambda unit: (-rates[unit], unit))
        filled.remove(best)
        filled.update(superbox.feeds[best])
        calls.append(best)
    return calls


def best_latency(superbox: Superbox, table: UnitTable, waiting: Collection[int]) -> list[int]:
    """MC or ML, whichever the cost model expects to have the lower latency (Aurora §5.3)."""
    cheap = min_cost(superbox, table, waiting)
    quick = min_latency(superbox, table, waiting)
    if expected_latency_s(superbox, table, quick) < expected_latency_s(superbox, table, cheap):
        return quick
    return cheap


ORDERS: Mapping[str, Order] = {
    "mc": min_cost,
    "ml": min_latency,
    "mm": min_memory,
    "best": best_latency,
}


def output_selectivity(superbox: Superbox, table: UnitTable, unit: int) -> float:
    """Gives o_sel: outputs per tuple of a unit's queue (Aurora §4.1.2).

    Departs from the text, which calls it the tuples needed for one output: its formula is this.
    """
    return prod(float(table["box_selectivity"][k]) for k in superbox.downstream[unit])


def output_cost_s(superbox: Superbox, table: UnitTable, unit: int) -> float:
    """Gives output_cost: seconds until a unit's queue has brought one output (Aurora §4.1.2)."""
    costs_s = table["box_cost_s"]
    cost_s = sum(
        _over(float(costs_s[k]), output_selectivity(superbox, table, k))
        for k in superbox.downstream[unit]
    )
    return inf if isnan(cost_s) else cost_s


def reduction_per_s(table: UnitTable, unit: int) -> float:
    """Gives mem_rr: tsize (1 − selectivity) / cost, bytes freed a second (Aurora §4.1.2)."""
    row = table[unit]
    rate = float(row["bytes_in"] * (1.0 - row["box_selectivity"]) / row["box_cost_s"])
    return -inf if isnan(rate) else rate


def expected_latency_s(superbox: Superbox, table: UnitTable, calls: Sequence[int]) -> float:
    """Gives the mean time until an output leaves, if the calls run now; ∞ if none is expected.

    Each call takes what waits: o + n p seconds, of which the outputs leave one by one.
    """
    queues = {unit: float(table["amount"][unit]) for unit in superbox.units}
    now_s = outputs = latencies_s = 0.0
    for unit in calls:
        row, taken = table[unit], queues[unit]
        if taken == 0:
            continue
        queues[unit] = 0.0
        overhead_s, cost_s = float(row["overhead_s"]), float(row["box_cost_s"])
        leaving = taken * float(row["box_selectivity"])
        if unit in superbox.outputs:
            outputs += leaving
            latencies_s += leaving * (now_s + overhead_s + min((taken + 1) / 2, taken) * cost_s)
        for reader in superbox.feeds[unit]:
            queues[reader] += leaving
        now_s += overhead_s + taken * cost_s
    return latencies_s / outputs if outputs else inf


def _over(cost_s: float, selectivity: float) -> float:
    return cost_s / selectivity if selectivity > 0 else inf


def _superbox(units: Units, tree: tuple[int, ...], queries: list[int]) -> Superbox:
    members, post_order = set(tree), dict[int, None]()
    feeds = {
        unit: tuple(reader for reader in units.shapes[unit].feeds if reader in members)
        for unit in tree
    }

    def visit(unit: int) -> None:
        for feeder in units.shapes[unit].fed_by:
            if feeder in members and feeder not in post_order:
                visit(feeder)
        post_order[unit] = None

    for unit in tree:
        if not feeds[unit]:
            visit(unit)
    place = {unit: number for number, unit in enumerate(post_order)}
    downstream: dict[int, tuple[int, ...]] = {}
    for unit in reversed(post_order):
        below = {each for reader in feeds[unit] for each in downstream[reader]}
        downstream[unit] = (unit, *sorted(below, key=place.__getitem__))
    outputs = frozenset(
        unit
        for unit in tree
        if any(query in stage.queries for stage in units.shapes[unit].stages for query in queries)
    )
    return Superbox(tuple(post_order), downstream, feeds, outputs)
