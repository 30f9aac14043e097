"""Queries that differ in constants alone, as a table of constants that rows are matched with."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from headgate.model.events import Ints
from headgate.model.form import Constant, Form
from headgate.model.network import Path
from headgate.model.stream import ARRIVED_AT
from headgate.spark.group import Output, braced, plain_column, quoted
from headgate.spark.jvm.arrow_frames import collected

MOST = 256
"""Members of one table: results of a call wait for its last, and each has a file of its own."""

MEMBER, REST = "__hg_member", "__hg_rest"

_PAIRS = 1 << 22
"""Pairs of a row and a member that are looked at in one go."""

_TYPES = {
    "int": ("tinyint", "smallint", "int", "bigint", "double"),
    "decimal": ("double",),
    "string": ("string",),
}
"""Types of the left side that need no other reading of a constant than the literal had."""

_COMPARE = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}


def fits(session: SparkSession, form: Form, schema: StructType) -> bool:
    """Tells whether a column of constants compares just as Spark compares the literals.

    Strings are matched by equality only: their order is Spark's business.
    """
    nothing = session.createDataFrame([], schema)
    types = nothing.selectExpr(*(f"{test.left} AS {_key(n)}" for n, test in enumerate(form.tests)))
    return all(
        name in _TYPES[test.kind] and (name != "string" or test.comparison == "=")
        for test, (_, name) in zip(form.tests, types.dtypes, strict=True)
    )


@dataclass(frozen=True)
class ConstantsGroup:
    """Queries with one form and one output.

    Args:
        members: the line of each member; equal queries have one line.
        outputs: SQL or, if it is one, the column of the stream, by its name in `computed`.
    """

    form: Form
    members: Mapping[str, int]
    constants: tuple[tuple[Constant, ...], ...]
    plain: tuple[str, ...]
    computed: Mapping[str, str]
    columns: tuple[str, ...]
    names: tuple[str, ...]

    @property
    def shape(self) -> str:
        """How the members share, for `explain`."""
        return f"constants table: {len(self.members)} queries that differ in constants alone"

    @cached_property
    def items(self) -> Mapping[str, str]:
        """What Spark computes of a row in the driver: both what is compared and what comes out."""
        rest = " AND ".join(f"({each})" for each in self.form.rest)
        items = {_key(number): test.left for number, test in enumerate(self.form.tests)}
        if rest:
            # What a condition may forbid to be computed is not: 1 / x behind x <> 0.
            items = {name: f"CASE WHEN {rest} THEN {left} END" for name, left in items.items()}
            items[REST] = rest
        for name, output in self.computed.items():
            items[name] = f"CASE WHEN {rest} THEN {output} END" if rest else output
        return items

    @cached_property
    def text(self) -> str:
        """One SELECT over `{trains}` and `{constants}`, for a job."""
        tests = [
            f"{test.left} {test.comparison} {_key(number)}"
            for number, test in enumerate(self.form.tests)
        ]
        where = " AND ".join([*tests, *(f"({each})" for each in self.form.rest)])
        columns = [ARRIVED_AT, *(quoted(name) for name in self.plain)]
        columns += [f"{output} AS {name}" for name, output in self.computed.items()]
        select = f"SELECT /*+ BROADCAST(k) */ {', '.join([*columns, MEMBER])} FROM "
        return f"{braced(select)}{{trains}} JOIN {{constants}} AS k ON {braced(where)}"

    def job(self, session: SparkSession, trains: DataFrame) -> pa.Table:
        """Gives a row for every member that a tuple passes, by a broadcast join."""
        constants = session.createDataFrame(self._table)
        return collected(session.sql(self.text, trains=trains, constants=constants))

    def split(self, rows: pa.Table, made: pa.Table, wanted: Iterable[str]) -> list[Output]:
        """Gives each wanted member's output.

        Args:
            rows: the stream's columns.
            made: what was computed for the same rows, or what a job gave.
        """
        chosen = [self.members[name] for name in wanted]
        asked = np.zeros(len(self.constants), dtype=np.bool_)
        asked[chosen] = True
        if MEMBER in made.column_names:
            members = made[MEMBER].to_numpy()
            at = np.flatnonzero(asked[members])
            members = members[at]
        else:
            at, members = self._matches(made, asked)
        order = np.argsort(members, kind="stable")
        at, members = at[order], members[order]
        arrived_s = rows[ARRIVED_AT].to_numpy()[at]
        made_here = [(made if each in self.computed else rows)[each] for each in self.columns]
        columns = [column.take(at) for column in made_here]
        table = pa.Table.from_arrays(columns, names=list(self.names)).combine_chunks()
        first, last = np.searchsorted(members, chosen), np.searchsorted(members, chosen, "right")
        return [
            Output(table.slice(begin, end - begin), arrived_s[begin:end])
            for begin, end in zip(first.tolist(), last.tolist(), strict=True)
        ]

    def _matches(self, made: pa.Table, asked: NDArray[np.bool_]) -> tuple[Ints, Ints]:
        """Gives rows and members that match, in the order of rows."""
        good = np.ones(made.num_rows, dtype=np.bool_)
        if self.form.rest:
            good &= _true(made[REST])
        code = np.zeros(made.num_rows, dtype=np.int64)
        for number, test in enumerate(self.form.tests):
            column = made[_key(number)]
            good &= column.is_valid().to_numpy()
            if test.comparison == "=":
                known = self._known[number]
                place = _places(column, known)
                good &= place >= 0
                code = code * len(known) + place
        codes, starts, members = self._index
        at = np.flatnonzero(good)
        place = np.searchsorted(codes, code[at])
        found = codes[np.minimum(place, len(codes) - 1)] == code[at]
        at, place = at[found], place[found]
        ranges = [
            (_COMPARE[test.comparison], _numbers(made[_key(n)]), self._columns[n])
            for n, test in enumerate(self.form.tests)
            if test.comparison != "="
        ]
        rows, ours = [], []
        for some in _chunks(starts[place + 1] - starts[place]):
            first, count = starts[place[some]], starts[place[some] + 1] - starts[place[some]]
            row = np.repeat(at[some], count)
            within = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
            member = members[np.repeat(first, count) + within]
            keep = asked[member]
            for compare, value, constant in ranges:
                keep &= compare(value[row], constant[member])
            rows.append(row[keep])
            ours.append(member[keep])
        nothing = np.zeros(0, dtype=np.int64)
        return np.concatenate([nothing, *rows]), np.concatenate([nothing, *ours])

    @cached_property
    def _columns(self) -> list[NDArray[Any]]:
        kinds = {"int": np.int64, "decimal": np.float64, "string": np.object_}
        columns = zip(*self.constants, strict=True)
        return [
            np.array(column, dtype=kinds[test.kind])
            for column, test in zip(columns, self.form.tests, strict=True)
        ]

    @cached_property
    def _table(self) -> pa.Table:
        kinds = {"int": pa.int32(), "decimal": pa.float64(), "string": pa.string()}
        columns = {
            _key(number): pa.array(self._columns[number], kinds[test.kind])
            for number, test in enumerate(self.form.tests)
        }
        return pa.table({**columns, MEMBER: pa.array(range(len(self.constants)), pa.int32())})

    @cached_property
    def _known(self) -> dict[int, NDArray[Any]]:
        """The different constants of every test for equality, in ascending order."""
        return {
            number: np.unique(self._columns[number])
            for number, test in enumerate(self.form.tests)
            if test.comparison == "="
        }

    @cached_property
    def _index(self) -> tuple[Ints, Ints, Ints]:
        """Members by what they want to be equal: the codes, where each begins, the members."""
        code = np.zeros(len(self.constants), dtype=np.int64)
        for number, known in self._known.items():
            code = code * len(known) + np.searchsorted(known, self._columns[number])
        order = np.argsort(code, kind="stable")
        codes, starts = np.unique(code[order], return_index=True)
        return codes, np.append(starts, len(code)), order


def constants_group_of(
    paths: Sequence[Path], columns: Sequence[str], texts: Mapping[str, str]
) -> ConstantsGroup:
    """Gives the group of paths that have one form and one output, see `alike`.

    Args:
        columns: of the stream.
        texts: what a member for a sink of text gets instead of its columns, by query.
    """
    first = paths[0]
    assert first.form is not None
    known = {name.lower(): name for name in columns}
    text = texts.get(first.query.name)
    outputs = first.outputs if text is None else (text,)
    computed: dict[str, str] = {}
    for output in outputs:
        if plain_column(output, known) is None:
            computed.setdefault(output, f"__hg_c{len(computed)}")
    used = tuple(plain_column(each, known) or computed[each] for each in outputs)
    lines = {each: line for line, each in enumerate(dict.fromkeys(p.constants for p in paths))}
    return ConstantsGroup(
        form=first.form,
        members={path.query.name: lines[path.constants] for path in paths},
        constants=tuple(lines),
        plain=tuple(name for name in columns if name in used),
        computed={name: output for output, name in computed.items()},
        columns=used,
        names=first.columns if len(first.columns) == len(outputs) else ("value",),
    )


def alike(path: Path, text: str | None) -> tuple[object, ...] | None:
    """Gives what queries of one table have in common; None for one that fits into none."""
    if path.form is None:
        return None
    return path.form, path.outputs, path.columns, text


def _key(number: int) -> str:
    return f"__hg_k{number}"


def _true(column: Any) -> NDArray[np.bool_]:
    known: NDArray[np.bool_] = column.fill_null(False).to_numpy()
    return known


def _numbers(column: Any) -> NDArray[Any]:
    """Gives numbers that compare as Spark's do: there NaN is above every other."""
    if not pa.types.is_floating(column.type):
        whole: NDArray[np.int64] = column.cast(pa.int64()).fill_null(0).to_numpy()
        return whole
    values = column.fill_null(0.0).to_numpy()
    return np.where(np.isnan(values), np.inf, values)


def _places(column: Any, known: NDArray[Any]) -> Ints:
    """Gives where values stand among those that are known; −1 for one that does not."""
    if known.dtype == np.object_:
        found: Any = pc.index_in(column.cast(pa.string()), value_set=pa.array(known))
        places: Ints = found.fill_null(-1).to_numpy().astype(np.int64)
        return places
    values = _numbers(column)
    at = np.minimum(np.searchsorted(known, values), len(known) - 1)
    return np.where(known[at] == values, at, -1)


def _chunks(pairs: Ints) -> Iterator[slice]:
    """Cuts rows into runs of at most so many pairs, or one row."""
    begin, sums = 0, np.cumsum(pairs)
    while begin < len(pairs):
        before = sums[begin - 1] if begin else 0
        end = max(begin + 1, int(np.searchsorted(sums, before + _PAIRS, side="right")))
        yield slice(begin, end)
        begin = end
