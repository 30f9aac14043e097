"""Unit tables by their columns, for tests that need no network."""

from typing import Any

import numpy as np

from headgate.model.network.unit_table import UNIT, UnitTable


def table_of(**columns: Any) -> UnitTable:
    """Return a table of units that wait, each with one tuple if nothing else is said."""
    count = max(np.size(values) for values in columns.values())
    table = np.zeros(count, dtype=UNIT)
    table["unit"], table["pending"], table["ready"] = np.arange(count), 1, True
    for name, values in columns.items():
        table[name] = values
    return table
