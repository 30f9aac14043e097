"""The cut of a query in two segments: cheap conditions first, then the function calls."""

from collections.abc import Sequence
from dataclasses import replace

from headgate.errors import QueryRefused
from headgate.model.network.network import FIRST, REST, Path
from headgate.model.network.operator import Operator
from headgate.model.query import Sink
from headgate.model.stream import DERIVED, Stream


def cut(path: Path, columns: Sequence[str]) -> tuple[Stream, Path, Path]:
    """Cut a query: return the hidden stream in between, the first segment and the rest.

    The first segment has the conditions before the first one that calls a function. The rest has
    the other conditions and the output columns. Conditions keep the order in which they were
    written, so that a condition that guards another still does.

    Args:
        columns: the columns of the query's stream; the hidden stream has all of them.

    Raises:
        QueryRefused: one of the two segments would be empty, or the query fills a stream.
    """
    query = path.query
    if query.into is not None:
        raise QueryRefused(
            query=query.name, clause="cut", reason="is not for a query that fills a stream",
            fix="leave it out: each query that reads the stream is a segment by itself",
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
            " after it that has one, in a plain SELECT whose conditions are joined by AND",
            fix="leave it out, and the query runs as one segment, or write such a condition first",
        )  # fmt: skip
    predicate = " AND ".join(condition.text for condition in first)
    opening = replace(
        query, name=query.name + FIRST, sql=f"SELECT * FROM {path.stream} WHERE {predicate}",
        sink=Sink(), statistics=None, cut=None,
    )  # fmt: skip
    queue = Stream(name=query.name + REST, format=DERIVED)
    passed = Operator(kind="project", expressions=tuple(columns))
    head = Path(
        query=opening, stream=path.stream, columns=tuple(columns), into=queue.name,
        operators=(Operator(kind="select", expressions=(predicate,)), passed),
        conditions=tuple(first), first_of=query.name,
    )  # fmt: skip
    later = " AND ".join(condition.text for condition in rest)
    selects = (Operator(kind="select", expressions=(later,)),) if later else ()
    tail = replace(
        path, stream=queue.name, conditions=rest,
        operators=(*selects, Operator(kind="project", expressions=path.outputs)),
    )  # fmt: skip
    return queue, head, tail
