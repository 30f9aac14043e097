"""Queries that differ only in constants, as a join of tuples with a table of constants."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headgate.model.network.network import Path
from headgate.model.stream import ARRIVED_AT
from headgate.model.window import ROW
from headgate.spark.jvm.query.plans import Parts, Plan, SharedPlan
from headgate.spark.output import Output

MOST = 256
"""The most members of one table. All results of a call wait for the last member's, and each member
writes its own file."""

MEMBER = "__hg_member"


@dataclass(frozen=True)
class ConstantsGroup:
    """Queries with the same form and the same output.

    Args:
        members: the line of each member in the table of constants; equal queries share a line.
        columns: the column of each output; a column of the stream begins with "=".
        names: the name of each output.
        text: the SQL of all members, for people to read.
    """

    stream: str
    plan: SharedPlan
    members: Mapping[str, int]
    columns: tuple[str, ...]
    names: tuple[str, ...]
    text: str

    @property
    def shape(self) -> str:
        """A description of how the members share, for `explain`."""
        return f"constants table: {len(self.members)} queries that differ in constants alone"

    @property
    def driver(self) -> Plan | None:
        """The plan for the driver lane: numbers of rows, and the members whose tests they pass."""
        return self.plan.driver

    @property
    def job(self) -> Plan:
        """The plan for a job: one row for every member whose tests a tuple passes."""
        return self.plan.job

    def split(self, rows: pa.Table, computed: pa.Table, names: Iterable[str]) -> list[Output]:
        """Return the output of each member in `names`.

        Args:
            rows: the stream's columns.
            computed: the matches that the driver lane computed for these rows, or a job's rows.
            names: the names of members.
        """
        lines = [self.members[name] for name in names]
        members = computed[MEMBER].to_numpy()
        order = np.argsort(members, kind="stable")
        places = order
        if ROW in computed.column_names:
            numbers = computed[ROW].to_numpy()
            # Outputs follow the order of the rows, whatever order the join has.
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
    """Return the group of paths that have the same form and the same output."""
    plan = parts[0].plans.constants_group([member_parts.form for member_parts in parts], ROW)
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
