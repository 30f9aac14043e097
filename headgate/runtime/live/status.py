"""Status and explanations of queries while they run, as plain data."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Any, TypeVar

from headgate.errors import UnknownName
from headgate.runtime.describe.drawing import Drawing
from headgate.runtime.describe.explanation import Explanation, number
from headgate.runtime.live.handle import QueryHandle
from headgate.runtime.live.membership import Roster
from headgate.runtime.live.run import Running

T = TypeVar("T")


def explanation_of(handle: QueryHandle, roster: Roster, policy: str) -> Explanation:
    """Return how a query runs; before the start, only what the query itself says."""
    name, catalogue, run = handle.name, roster.catalogue, roster.run
    explanation = Explanation.of(catalogue.segments_of(name), policy, catalogue.class_of(name))
    if run is None:
        return explanation
    units = catalogue.units_of(name)
    if handle.unit < 0:
        raise UnknownName(kind="query", name=name, known=roster.handles)
    members, shape, sql = roster.engine.way_of(handle.unit)
    planned = run.scheduler.lane_text(handle.unit, run.pending(units[-1:]))
    return replace(
        explanation,
        state=handle.state,
        cause=_cause(handle),
        shares_code_with=[member for member in members if member != name],
        shape=shape,
        group_sql=sql,
        lane=roster.engine.lane_text(handle.unit, planned),
        order=run.scheduler.order_text(handle.unit),
        statistics=_figures(handle),
        next_train=run.next_train(units[0]),
        behind=run.pending(units),
    )


def drawing_of(roster: Roster, policy: str) -> Drawing:
    """Draw all queries: which streams they read, and what they share."""
    queries = _for_all(roster, lambda handle: explanation_of(handle, roster, policy))
    return Drawing.of(queries, roster.catalogue.readable, policy)


def status_of(roster: Roster, run: Running, policy: str) -> dict[str, Any]:
    """Return the policy, the streams and every query's state and figures."""
    lines = {line.name: line for line in run.report(policy).queries}
    accounts = roster.engine.accounts()

    def row(handle: QueryHandle) -> dict[str, Any]:
        line, account = lines.get(handle.name), accounts.get(handle.name)
        return {
            **_named(handle, roster),
            "state": handle.state,
            "cause": _cause(handle),
            "waiting": run.pending(roster.catalogue.units_of(handle.name)),
            "mean_response_s": None if line is None else number(line.response_s.mean),
            "lane": handle.lane,
            "account": None if account is None else asdict(account),
            "statistics": _figures(handle),
        }

    return {
        "policy": policy, "streams": list(roster.catalogue.readable),
        "dead_letters": roster.engine.dead_letters(), "queries": _for_all(roster, row),
    }  # fmt: skip


def starting(roster: Roster, policy: str, rehearsed_of: tuple[int, int]) -> dict[str, Any]:
    """Return the status before the first tuple, with how many queries are rehearsed so far.

    Args:
        rehearsed_of: the number of queries rehearsed, and the number to rehearse.
    """

    def row(handle: QueryHandle) -> dict[str, Any]:
        return {
            **_named(handle, roster), "state": "STARTING", "cause": None, "waiting": 0,
            "mean_response_s": None, "lane": None, "account": None, "statistics": {},
        }  # fmt: skip

    done, total = rehearsed_of
    return {
        "policy": policy, "streams": list(roster.catalogue.readable), "dead_letters": {},
        "queries": _for_all(roster, row), "starting": {"rehearsed": done, "of": total},
    }  # fmt: skip


def _for_all(roster: Roster, describe: Callable[[QueryHandle], T]) -> list[T]:
    """Return the descriptions of all queries, except one that is dropped at this moment."""
    descriptions = []
    for handle in tuple(roster.handles.values()):
        with suppress(UnknownName):
            descriptions.append(describe(handle))
    return descriptions


def _named(handle: QueryHandle, roster: Roster) -> dict[str, Any]:
    return {
        "query": handle.name,
        "class": roster.catalogue.class_of(handle.name),
        "stream": roster.catalogue.segments_of(handle.name)[0].stream,
    }


def _cause(handle: QueryHandle) -> str | None:
    return None if handle.exception() is None else str(handle.exception())


def _figures(handle: QueryHandle) -> dict[str, float | None]:
    return {key: number(value) for key, value in handle.statistics().items()}
