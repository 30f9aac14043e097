"""Where a query is cut in two: cheap conditions first, then what calls functions."""

from collections.abc import Sequence
from dataclasses import replace

from headgate.errors import QueryRefused
from headgate.model.network import FIRST, REST, Path
from headgate.model.operator import Operator
from headgate.model.query import Sink
from headgate.model.stream import DERIVED, Stream


def cut(path: Path, columns: Sequence[str]) -> tuple[Stream, Path, Path]:
    """Return the hidden stream between, the first segment and the rest.

    The first has the conditions before the first one that calls a function; the rest has the others
    and what the query puts out. They stay in the order they were written in, so that a condition
    that guards another still does.

    Args:
        columns: of the query's stream; all of them are in the one between.

    Raises:
        QueryRefused: one of the two would be empty.
    """
    query = path.query
    if query.into is not None:
        raise QueryRefused(
            query=query.name, clause="cut", reason="is for queries whose results leave",
            fix="leave it out: what reads the stream is a segment by itself",
        )  # fmt: skip
    first = []
    for condition in () if path.runs_whole else path.conditions:
        if condition.calls:
            break
        first.append(condition)
    rest = path.conditions[len(first) :]
    if not first or not (rest or path.calls):
        raise QueryRefused(
            query=query.name, clause="cut",
            reason="is possible only between a condition without a function call and something"
            " behind it that has one, in a plain SELECT whose conditions are joined by AND",
            fix="leave it out: the query runs as one, or write such a condition first",
        )  # fmt: skip
    kept = " AND ".join(condition.text for condition in first)
    opening = replace(
        query, name=query.name + FIRST, sql=f"SELECT * FROM {path.stream} WHERE {kept}",
        sink=Sink(), statistics=None, cut=None,
    )  # fmt: skip
    queue = Stream(name=query.name + REST, format=DERIVED)
    passed = Operator(kind="project", expressions=tuple(columns))
    head = Path(
        query=opening, stream=path.stream, columns=tuple(columns), into=queue.name,
        operators=(Operator(kind="select", expressions=(kept,)), passed),
        conditions=tuple(first), first_of=query.name,
    )  # fmt: skip
    later = " AND ".join(condition.text for condition in rest)
    selects = (Operator(kind="select", expressions=(later,)),) if later else ()
    tail = replace(
        path, stream=queue.name, conditions=rest,
        operators=(*selects, Operator(kind="project", expressions=path.outputs)),
    )  # fmt: skip
    return queue, head, tail
