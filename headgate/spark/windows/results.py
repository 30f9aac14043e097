"""What computations over windows give: columns for the user, then columns that no user sees."""

from typing import Any

import pyarrow as pa

from headgate.spark.jvm.query.plans import Plan
from headgate.spark.output import numbered


class Results:
    """Tells the columns of a plan that a user sees from the others, which come behind them.

    Args:
        count: how many columns a user sees.
        text: the SQL, over their numbers, of what a sink of text puts out instead of them.
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
        """Return the columns that a user sees."""
        return table.select(list(range(self.visible_count)))

    def hidden(self, table: pa.Table, name: str) -> Any:
        """Return a column that no user sees."""
        return table.column(self.visible_count + self.hidden_names.index(name))
