"""Queries over the same trains as one: predicates are bits of a number, outputs are shared."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from headgate.model.events import Floats
from headgate.model.network import Path
from headgate.model.stream import ARRIVED_AT
from headgate.model.window_ends import Times

MOST = 63
"""Members that fit into one number with a sign."""

MASK = "__hg_mask"


@dataclass(frozen=True)
class Output:
    """What a member made: its rows, and when the tuples behind them arrived.

    Args:
        closed: how many windows they are of; None where there is no window that closes.
        places: where each row belongs, for a stream that is made of them (`derived`): the number of
            the tuple that it comes from among those of the call; of windows, their ends and so on.
            None where that is not known.
    """

    table: pa.Table
    arrived_at_s: Floats
    closed: int | None = None
    places: Times | None = None

    @property
    def instants(self) -> int:
        """What counts as output for a query's selectivity."""
        return self.table.num_rows if self.closed is None else self.closed


@dataclass(frozen=True)
class Member:
    """Where a query finds its rows and columns: a bit of the mask, columns of stream or group."""

    bit: int | None
    columns: tuple[str, ...]
    names: tuple[str, ...]


@dataclass(frozen=True)
class Group:
    """What is computed for some queries of one stream.

    `items` is the SQL of every computed column by its name, the mask first; `plain` are columns of
    the stream that some member puts out as they are; `condition` holds for every row that anybody
    wants, None when all rows are wanted.
    """

    stream: str
    items: Mapping[str, str]
    plain: tuple[str, ...]
    condition: str | None
    members: Mapping[str, Member]

    @property
    def shape(self) -> str:
        """How the members share, for `explain`."""
        count = len(self.members)
        return f"mask: one scan, a bit for each of {count} queries" if count > 1 else "single"

    @property
    def text(self) -> str:
        """One SELECT over `{trains}`, for a job."""
        columns = [ARRIVED_AT, *(quoted(name) for name in self.plain)]
        columns += [f"{text} AS {name}" for name, text in self.items.items()]
        where = f" WHERE {self.condition}" if self.condition else ""
        return f"SELECT {braced(', '.join(columns) + ' FROM ')}{{trains}}{braced(where)}"

    def job(self, session: SparkSession, trains: DataFrame) -> pa.Table:
        """Gives the rows that anybody wants, with what is computed of them."""
        return session.sql(self.text, trains=trains).toArrow()

    def split(self, rows: pa.Table, made: pa.Table, wanted: Iterable[str]) -> list[Output]:
        """Gives each wanted member's output.

        Args:
            rows: the stream's columns.
            made: the computed ones, for the same rows.
        """
        arrived_s = rows[ARRIVED_AT].to_numpy()
        mask = made[MASK].to_numpy() if MASK in self.items else None
        outputs: dict[Member, Output] = {}
        members = [self.members[name] for name in wanted]
        for member in dict.fromkeys(members):  # equal queries are answered once
            columns = [(made if each in self.items else rows)[each] for each in member.columns]
            if member.bit is None or mask is None:
                chosen_s = arrived_s
            else:
                at = np.flatnonzero(mask & (1 << member.bit))
                chosen_s = arrived_s[at]
                if len(at) < len(arrived_s):
                    columns = [column.take(at) for column in columns]
            table = pa.Table.from_arrays(columns, names=list(member.names))
            outputs[member] = Output(table, chosen_s)
        return [outputs[member] for member in members]


def group_of(paths: Sequence[Path], columns: Sequence[str], texts: Mapping[str, str]) -> Group:
    """Gives the group of some paths over one stream.

    An output is computed only where a member that wants it passes: otherwise `1 / x` behind
    `WHERE x <> 0` would fail on rows that its query never sees. Equal outputs of several members
    are one column, equal predicates are one bit.

    Args:
        columns: of the stream.
        texts: what a member for a sink of text gets instead of its columns, by query.
    """
    known = {name.lower(): name for name in columns}
    wanted: dict[str, list[Path]] = {}
    outputs: dict[str, tuple[str, ...]] = {}
    for path in paths:
        name = path.query.name
        outputs[name] = (texts[name],) if name in texts else path.outputs
        for output in outputs[name]:
            if plain_column(output, known) is None:
                wanted.setdefault(output, []).append(path)
    computed = {output: f"__hg_c{number}" for number, output in enumerate(wanted)}
    predicates = dict.fromkeys(path.predicate for path in paths if path.predicate is not None)
    bits = {predicate: bit for bit, predicate in enumerate(predicates)}
    items: dict[str, str] = {}
    if bits:
        ones = [f"(CASE WHEN {each} THEN {1 << bit}L ELSE 0L END)" for each, bit in bits.items()]
        items[MASK] = _either(ones)
    for output, askers in wanted.items():
        items[computed[output]] = _guarded(output, askers)
    members = {
        name: Member(
            None if path.predicate is None else bits[path.predicate],
            tuple(plain_column(each, known) or computed[each] for each in outputs[name]),
            path.columns if len(path.columns) == len(outputs[name]) else ("value",),
        )
        for path in paths
        for name in [path.query.name]
    }
    plain = {column for each in members.values() for column in each.columns} & set(columns)
    condition = None
    if all(path.predicate is not None for path in paths):
        condition = " OR ".join(f"({each})" for each in bits)
    used = tuple(name for name in columns if name in plain)
    return Group(paths[0].stream, items, used, condition, members)


def quoted(name: str) -> str:
    """Gives a name as SQL takes it, whatever letters it has.

    >>> print(quoted("a`b"))
    `a``b`
    """
    return "`" + name.replace("`", "``") + "`"


def braced(sql: str) -> str:
    """Doubles braces: `sql()` reads single ones as names of its arguments."""
    return sql.replace("{", "{{").replace("}", "}}")


def plain_column(output: str, known: Mapping[str, str]) -> str | None:
    """Gives the column of the stream that an output is; None if it is computed."""
    name = output.strip()
    if len(name) > 2 and name[0] == name[-1] == "`":
        name = name[1:-1].replace("``", "`")
    elif "." in name:
        return None  # a field of a struct, even where a column has that name
    return known.get(name.lower())


def _guarded(output: str, askers: Sequence[Path]) -> str:
    conditions = dict.fromkeys(path.predicate for path in askers)
    if None in conditions:
        return output
    return f"CASE WHEN {' OR '.join(f'({each})' for each in conditions)} THEN {output} END"


def _either(terms: Sequence[str]) -> str:
    """Joins terms bit by bit, as a tree of little depth."""
    if len(terms) == 1:
        return terms[0]
    half = len(terms) // 2
    return f"({_either(terms[:half])} | {_either(terms[half:])})"
