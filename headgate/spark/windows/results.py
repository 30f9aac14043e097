"""The result columns of computations over windows: visible columns, then hidden columns."""

from typing import Any

import pyarrow as pa

from headgate.spark.jvm.query.plans import Plan
from headgate.spark.output import numbered


class Results:
    """The visible columns of a plan, which the user sees, and the hidden columns after them.

    Args:
        count: the number of visible columns.
        text: for a sink of text, the SQL of the one column that replaces the visible columns; it
            refers to them by number.
    """

    def __init__(self, plan: Plan, count: int, text: str | None) -> None:
        names = plan.schema.names
        self.hidden_names = names[count:]
        self.visible_count = count if text is None else 1
        if text is None:
            self.plan = plan
        else:
            columns = numbered(len(names))
            self.plan = plan.named(columns).select(text, *columns[count:])

    def visible(self, table: pa.Table) -> pa.Table:
        """Return the columns that the user sees."""
        return table.select(list(range(self.visible_count)))

    def hidden(self, table: pa.Table, name: str) -> Any:
        """Return a column that is hidden from the user."""
        return table.column(self.visible_count + self.hidden_names.index(name))
