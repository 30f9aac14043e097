"""Queries over the same trains as one plan: each predicate sets a bit, and outputs are shared."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headgate.model.network.network import Path
from headgate.model.stream import ARRIVED_AT
from headgate.spark.jvm.query.plans import Parts, Plan, SharedPlan
from headgate.spark.output import Output

MOST = 63
"""The most members: one bit each in a signed 64-bit number."""

MASK = "__hg_mask"


@dataclass(frozen=True)
class Member:
    """The rows and columns of one query in a group.

    Args:
        bit: the bit of the mask that marks its rows; None for all rows.
        columns: the column of each output; a column of the stream begins with "=".
        names: the name of each output.
    """

    bit: int | None
    columns: tuple[str, ...]
    names: tuple[str, ...]


@dataclass(frozen=True)
class MaskGroup:
    """Queries of one stream that one plan computes, with a bit for each query.

    Args:
        text: the SQL of all members, for people to read.
    """

    stream: str
    plan: SharedPlan
    members: Mapping[str, Member]
    text: str

    @property
    def shape(self) -> str:
        """A description of how the members share, for `explain`."""
        count = len(self.members)
        return f"mask: one scan, a bit for each of {count} queries" if count > 1 else "single"

    @property
    def driver(self) -> Plan | None:
        """The plan for the driver lane, with one row per tuple; None if nothing is computed."""
        return self.plan.driver

    @property
    def job(self) -> Plan:
        """The plan for a job, with the rows that at least one member selects."""
        return self.plan.job

    def split(self, rows: pa.Table, computed: pa.Table, names: Iterable[str]) -> list[Output]:
        """Return the output of each member in `names`.

        Args:
            rows: the stream's columns.
            computed: the columns that the driver lane computed for these rows, or a job's rows.
            names: the names of members.
        """
        arrived_s = rows[ARRIVED_AT].to_numpy()
        mask = computed[MASK].to_numpy() if MASK in computed.column_names else None
        outputs: dict[Member, Output] = {}
        members = [self.members[name] for name in names]
        for member in dict.fromkeys(members):  # equal queries have one output
            columns = [
                rows[column[1:]] if column.startswith("=") else computed[column]
                for column in member.columns
            ]
            arrivals_s = arrived_s
            if member.bit is not None and mask is not None:
                places = np.flatnonzero(mask & (1 << member.bit))
                arrivals_s = arrived_s[places]
                if len(places) < len(arrived_s):
                    columns = [column.take(places) for column in columns]
            table = pa.Table.from_arrays(columns, names=list(member.names))
            outputs[member] = Output(table, arrivals_s)
        return [outputs[member] for member in members]


def mask_group(paths: Sequence[Path], parts: Sequence[Parts]) -> MaskGroup:
    """Return the group of paths over one stream, given the parts of each."""
    plans = parts[0].plans
    plan = plans.mask_group(parts)
    members = {
        path.query.name: Member(
            None if bit < 0 else bit, columns, tuple(output.name for output in member_parts.outputs)
        )
        for path, member_parts, (bit, columns) in zip(paths, parts, plan.members, strict=True)
    }
    return MaskGroup(paths[0].stream, plan, members, _text(paths[0].stream, parts))


def _text(stream: str, parts: Sequence[Parts]) -> str:
    """Return the SQL of all members, for people to read."""
    outputs = dict.fromkeys(
        output.text for member_parts in parts for output in member_parts.outputs
    )
    predicates = dict.fromkeys(
        " AND ".join(condition.text for condition in member_parts.conditions)
        for member_parts in parts
    )
    where = ""
    if len(predicates) > 1:
        where = " WHERE " + " OR ".join(f"({predicate or 'true'})" for predicate in predicates)
    elif any(predicates):
        where = f" WHERE {next(iter(predicates))}"
    return f"SELECT {', '.join(outputs)} FROM {stream}{where}"
