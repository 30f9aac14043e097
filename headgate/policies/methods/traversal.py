"""Superboxes and the orders in which their boxes are called (Aurora §4.1.2)."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isnan, prod

from headgate.model.network.unit_table import UnitTable
from headgate.model.network.units import Units

Order = Callable[["Superbox", UnitTable, Collection[int]], Sequence[int]]
"""A function from a superbox, the unit table and the units with tuples to the calls in order."""


@dataclass(frozen=True)
class Superbox:
    """The units that work for one output: a tree whose root outputs results (Aurora §4.1).

    Args:
        units: the units in post order, so that each comes after all that feed it.
        downstream: for each unit b, D(b): the units from b itself to the root.
        feeds: for each unit, the units of the superbox whose queues it fills.
        outputs: the units that output results.
    """

    units: tuple[int, ...]
    downstream: Mapping[int, tuple[int, ...]]
    feeds: Mapping[int, tuple[int, ...]]
    outputs: frozenset[int]


def superboxes_of(units: Units) -> tuple[Superbox, ...]:
    """Return one superbox per application (Aurora §4.1.1); queries with the same tree share one.

    A unit that several queries share is part of the superbox of each.
    """
    queries_by_tree: dict[tuple[int, ...], list[int]] = {}
    for query in range(len(units.network.paths)):
        tree = tuple(shape.number for shape in units.shapes if query in shape.queries)
        if tree:
            queries_by_tree.setdefault(tree, []).append(query)
    return tuple(_superbox(units, *application) for application in queries_by_tree.items())


def min_cost(superbox: Superbox, table: UnitTable, waiting: Collection[int]) -> list[int]:
    """Return the boxes in post order: every box once, after all that feed it (MC)."""
    reached = {unit for first in waiting for unit in superbox.downstream[first]}
    return [unit for unit in superbox.units if unit in reached]


def min_latency(superbox: Superbox, table: UnitTable, waiting: Collection[int]) -> list[int]:
    """Return boxes in ascending order of output cost, each followed by those downstream (ML)."""
    ranked = sorted(waiting, key=lambda unit: (output_cost_s(superbox, table, unit), unit))
    return [unit for first in ranked for unit in superbox.downstream[first]]


def min_memory(superbox: Superbox, table: UnitTable, waiting: Collection[int]) -> list[int]:
    """Return, as each next call, the box with tuples that frees the most memory per second (MM).

    Departs from the paper's text, which takes the order "as in ML", and follows its example. A box
    that was called is expected to fill the next queue; if it does not, the next call is skipped.
    """
    rates = {
        unit: reduction_per_s(table, unit)
        for unit in {box for first in waiting for box in superbox.downstream[first]}
    }
    filled, calls = set(waiting), []
    while filled:
        best = min(filled, key=lambda unit: (-rates[unit], unit))
        filled.remove(best)
        filled.update(superbox.feeds[best])
        calls.append(best)
    return calls


ORDERS: Mapping[str, Order] = {"mc": min_cost, "ml": min_latency, "mm": min_memory}

BEST = "best"
"""Instead of an order: MC or ML, whichever `best_latency` chooses."""

ROUNDS = 30
"""How many later traversals count for a choice, as long as tuples arrive for them."""


@dataclass(frozen=True)
class Arrivals:
    """What comes while a superbox is traversed.

    Args:
        per_s: tuples per second by unit.
        others_s: how long other superboxes run before this one has its next turn.
    """

    per_s: Mapping[int, float]
    others_s: float = 0.0


def best_latency(
    superbox: Superbox, table: UnitTable, waiting: Collection[int], arrivals: Arrivals
) -> list[int]:
    """Return MC or ML, whichever the cost model expects to have the lower latency (Aurora §5.3).

    Tuples that arrive during a traversal wait for the next one. So a traversal of many calls is
    paid for by those that come later, too, and near saturation by all of them.
    """
    cheap, quick = (
        expected_latency_s(superbox, table, waiting, arrivals, order)
        for order in (min_cost, min_latency)
    )
    return (min_latency if quick < cheap else min_cost)(superbox, table, waiting)


def output_selectivity(superbox: Superbox, table: UnitTable, unit: int) -> float:
    """Return o_sel: outputs per tuple of a unit's queue (Aurora §4.1.2).

    Departs from the paper's text, which calls it the tuples needed for one output, and follows its
    formula.
    """
    return prod(float(table["box_selectivity"][k]) for k in superbox.downstream[unit])


def output_cost_s(superbox: Superbox, table: UnitTable, unit: int) -> float:
    """Return output_cost: seconds until a unit's queue has led to one output (Aurora §4.1.2)."""
    costs_s = table["box_cost_s"]
    cost_s = sum(
        _over(float(costs_s[k]), output_selectivity(superbox, table, k))
        for k in superbox.downstream[unit]
    )
    return inf if isnan(cost_s) else cost_s


def reduction_per_s(table: UnitTable, unit: int) -> float:
    """Return mem_rr: tsize (1 − selectivity) / cost, bytes freed per second (Aurora §4.1.2)."""
    row = table[unit]
    rate = float(row["bytes_in"] * (1.0 - row["box_selectivity"]) / row["box_cost_s"])
    return -inf if isnan(rate) else rate


def expected_latency_s(
    superbox: Superbox,
    table: UnitTable,
    waiting: Collection[int],
    arrivals: Arrivals,
    order: Order,
) -> float:
    """Return the mean time until an output leaves, if all traversals have one order.

    It counts the tuples that wait now, and those that arrive during this traversal and the next
    ones, until less than one tuple is expected to wait for the next. ∞ if no output is expected.
    """
    queues = {unit: float(table["amount"][unit]) for unit in superbox.units}
    calls = order(superbox, table, waiting)
    outputs, latencies_s, seconds = _traversed(superbox, table, calls, queues)
    for _ in range(ROUNDS):
        round_s = seconds + arrivals.others_s
        coming = {unit: per_s * round_s for unit, per_s in arrivals.per_s.items()}
        if sum(coming.values()) < 1.0:
            break
        calls = order(superbox, table, coming)
        queues = {unit: coming.get(unit, 0.0) for unit in superbox.units}
        more, more_s, seconds = _traversed(superbox, table, calls, queues)
        outputs += more
        latencies_s += more_s + more * round_s / 2
    return latencies_s / outputs if outputs else inf


def _traversed(
    superbox: Superbox, table: UnitTable, calls: Sequence[int], queues: dict[int, float]
) -> tuple[float, float, float]:
    """Return the outputs of a traversal, the sum of their latencies, and its seconds.

    Each call takes all waiting tuples, in o + n p seconds; its outputs leave one by one meanwhile.
    """
    now_s = outputs = latencies_s = 0.0
    for unit in calls:
        row, tuples = table[unit], queues[unit]
        if tuples == 0:
            continue
        queues[unit] = 0.0
        overhead_s, cost_s = float(row["overhead_s"]), float(row["box_cost_s"])
        leaving = tuples * float(row["box_selectivity"])
        if unit in superbox.outputs:
            outputs += leaving
            latencies_s += leaving * (now_s + overhead_s + min((tuples + 1) / 2, tuples) * cost_s)
        for reader in superbox.feeds[unit]:
            queues[reader] += leaving
        now_s += overhead_s + tuples * cost_s
    return outputs, latencies_s, now_s


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
        below = {successor for reader in feeds[unit] for successor in downstream[reader]}
        downstream[unit] = (unit, *sorted(below, key=place.__getitem__))
    outputs = frozenset(
        unit
        for unit in tree
        if any(query in stage.queries for stage in units.shapes[unit].stages for query in queries)
    )
    return Superbox(tuple(post_order), downstream, feeds, outputs)
