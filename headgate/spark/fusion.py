"""The SQL of a call: one query alone, or several as one scan with a flag for each."""

from collections.abc import Sequence
from dataclasses import dataclass

from headgate.model.network import Path
from headgate.model.stream import ARRIVED_AT


@dataclass(frozen=True)
class FusedSql:
    """A text over `{trains}`, and where in its result each member finds its rows and columns.

    `flags[i]` names the column that is true for member i's rows, None when all are; `columns[i]`
    names its output columns in order.
    """

    text: str
    flags: tuple[str | None, ...]
    columns: tuple[tuple[str, ...], ...]


def fused_sql(paths: Sequence[Path], as_json: Sequence[bool]) -> FusedSql:
    """Gives one text for all paths: the OR of the predicates, a flag a member, shared outputs once.

    An output is computed only where a member that wants it has its flag: otherwise `1 / x` behind
    `WHERE x <> 0` would fail on rows that its query never sees. Equal outputs of several members
    are one column. A member for a JSON sink gets one column of text, written by Spark.
    """
    alone = len(paths) == 1
    predicates = [path.predicate for path in paths]
    wanted: dict[str, list[int]] = {}
    texts: list[tuple[str, ...]] = []
    for member, (path, json) in enumerate(zip(paths, as_json, strict=True)):
        outputs = (_json(path),) if json else path.outputs
        texts.append(outputs)
        for output in outputs:
            wanted.setdefault(output, []).append(member)
    names = {output: f"__hg_c{number}" for number, output in enumerate(wanted)}
    select = [ARRIVED_AT]
    flags: list[str | None] = []
    for member, predicate in enumerate(predicates):
        flag = None if alone or predicate is None else f"__hg_f{member}"
        flags.append(flag)
        if flag is not None:
            select.append(f"coalesce({predicate}, false) AS {flag}")
    for output, members in wanted.items():
        select.append(
            f"{_guarded(output, [predicates[m] for m in members], alone)} AS {names[output]}"
        )
    where = ""
    if all(predicate is not None for predicate in predicates):
        where = " WHERE " + " OR ".join(f"({predicate})" for predicate in predicates)
    select_list = ", ".join(select)
    return FusedSql(
        text=f"SELECT {_braced(select_list)} FROM {{trains}}{_braced(where)}",
        flags=tuple(flags),
        columns=tuple(tuple(names[output] for output in outputs) for outputs in texts),
    )


def _guarded(output: str, predicates: Sequence[str | None], alone: bool) -> str:
    plain = output.strip("`").replace("_", "").isalnum()
    conditions = [predicate for predicate in predicates if predicate is not None]
    if alone or plain or len(conditions) < len(predicates):
        return output
    return (
        f"CASE WHEN {' OR '.join(f'({condition})' for condition in conditions)} THEN {output} END"
    )


def _json(path: Path) -> str:
    pairs = ", ".join(
        f"{output} AS `{name}`" for output, name in zip(path.outputs, path.columns, strict=True)
    )
    return f"to_json(struct({pairs}))"


def _braced(sql: str) -> str:
    """Doubles braces: `sql()` reads single ones as names of its arguments."""
    return sql.replace("{", "{{").replace("}", "}}")
