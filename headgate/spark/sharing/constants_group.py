"""Queries that differ in constants alone, as a join of tuples with a table of constants."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headgate.model.network import Path
from headgate.model.stream import ARRIVED_AT
from headgate.model.window import ROW
from headgate.spark.jvm.query.plans import Parts, Plan, SharedPlan
from headgate.spark.output import Output

MOST = 256
"""Members of one table: results of a call wait for its last, and each has a file of its own."""

MEMBER = "__hg_member"


@dataclass(frozen=True)
class ConstantsGroup:
    """Queries with one form and one output.

    Args:
        members: the line of each member in the table; equal queries have one line.
        columns: where the outputs are: columns of the stream begin with "=".
    """

    stream: str
    plan: SharedPlan
    members: Mapping[str, int]
    columns: tuple[str, ...]
    names: tuple[str, ...]
    text: str

    @property
    def shape(self) -> str:
        """How the members share, for `explain`."""
        return f"constants table: {len(self.members)} queries that differ in constants alone"

    @property
    def driver(self) -> Plan | None:
        """What the driver lane computes: numbers of rows, and the members that they pass."""
        return self.plan.driver

    @property
    def job(self) -> Plan:
        """What a job computes: a row for every member that a tuple passes."""
        return self.plan.job

    def split(self, rows: pa.Table, computed: pa.Table, names: Iterable[str]) -> list[Output]:
        """Return each member's output.

        Args:
            rows: the stream's columns.
            computed: the matches of these rows, or what a job gave.
            names: of the members that are wanted.
        """
        lines = [self.members[name] for name in names]
        members = computed[MEMBER].to_numpy()
        order = np.argsort(members, kind="stable")
        places = order
        if ROW in computed.column_names:
            numbers = computed[ROW].to_numpy()
            # In the order of the rows, whatever the join's is.
            order = np.lexsort((numbers, members))
            places = numbers[order]
        members = members[order]
        arrived_s = rows[ARRIVED_AT].to_numpy()[places]
        columns = [
            rows[column[1:]].take(places)
            if column.startswith("=")
            else computed[column].take(order)
            for column in self.columns
        ]
        table = pa.Table.from_arrays(columns, names=list(self.names)).combine_chunks()
        first, last = np.searchsorted(members, lines), np.searchsorted(members, lines, "right")
        return [
            Output(table.slice(begin, end - begin), arrived_s[begin:end])
            for begin, end in zip(first.tolist(), last.tolist(), strict=True)
        ]


def constants_group(paths: Sequence[Path], parts: Sequence[Parts]) -> ConstantsGroup:
    """Return the group of paths that have one form and one output."""
    plan = parts[0].plans.constants_group([own.form for own in parts], ROW)
    lines = [line for line, _ in plan.members]
    predicate = " AND ".join(condition.text for condition in parts[0].conditions)
    outputs = ", ".join(output.text for output in parts[0].outputs)
    return ConstantsGroup(
        stream=paths[0].stream,
        plan=plan,
        members={path.query.name: line for path, line in zip(paths, lines, strict=True)},
        columns=plan.members[0][1],
        names=tuple(output.name for output in parts[0].outputs),
        text=f"SELECT {outputs} FROM {paths[0].stream} JOIN constants ON {predicate}",
    )
