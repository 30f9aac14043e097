"""Views: the cost and selectivity of a unit include those of the units that read its stream."""

from collections.abc import Mapping

from headgate.model.network.unit_table import UnitTable
from headgate.model.network.units import Units


def follow(table: UnitTable, feeds: Mapping[int, tuple[int, ...]]) -> None:
    """Add the figures of its readers to each unit that fills a stream.

    Over the whole way from a producer to its readers, S is a product and c̄ is weighted by the
    share of tuples that goes on. Every unit on the way gets the T of the whole way.

    Args:
        table: the unit table, with the figures of each unit by itself.
        feeds: by producer, the units that read its results, in the order of `feeds_of`.
    """
    for unit, fed in reversed([*feeds.items()]):
        row, after = table[unit], list(fed)
        passes = float(row["box_selectivity"])
        row["selectivity"] = passes * table["selectivity"][after].sum()
        row["tuple_cost_s"] += passes * table["tuple_cost_s"][after].sum()
        row["remaining_s"] += table["remaining_s"][after].max()
        row["ideal_s"] = row["remaining_s"]
    for unit, fed in feeds.items():
        spent_s = table["ideal_s"][unit] - table["remaining_s"][list(fed)].max()
        for reader in fed:  # if several ways lead to a reader, the longest counts
            whole_s = spent_s + table["remaining_s"][reader]
            table["ideal_s"][reader] = max(whole_s, table["ideal_s"][reader])


def feeds_of(units: Units) -> dict[int, tuple[int, ...]]:
    """Return the readers of each unit that fills a stream, each producer before its readers."""
    feeds = {shape.number: shape.feeds for shape in units.shapes if shape.feeds}
    return {unit: feeds[unit] for unit in _in_order(feeds)}


def _in_order(feeds: Mapping[int, tuple[int, ...]]) -> list[int]:
    """Return the units that feed others, each producer before its readers."""
    order: dict[int, None] = {}

    def add(unit: int) -> None:
        if unit in feeds and unit not in order:
            for fed in feeds[unit]:
                add(fed)
            order[unit] = None

    for unit in sorted(feeds):
        add(unit)
    return [*reversed(order)]
