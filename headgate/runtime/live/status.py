"""Status and explanations of queries while they run, as plain data."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from math import nan
from typing import Any, TypeVar

from headgate.errors import UnknownName
from headgate.metrics.last_minute import Recent, minute_s, recent_by_unit
from headgate.metrics.report import Report
from headgate.model.network.network import Path
from headgate.runtime.describe.drawing import Drawing
from headgate.runtime.describe.explanation import Explanation, number
from headgate.runtime.members.membership import Membership
from headgate.runtime.run.live_query import LiveQuery
from headgate.runtime.run.run import Running

T = TypeVar("T")


def explanation_of(query: LiveQuery, membership: Membership, policy: str) -> Explanation:
    """Return how a query runs; before the start, only what the query itself says."""
    name, catalog, run = query.name, membership.catalog, membership.run
    explanation = Explanation.of(catalog.segments_of(name), policy, catalog.class_of(name))
    if run is None:
        return explanation
    units = catalog.ids_of(name)
    members, shape, sql = run.engine.way_of(units[-1])
    scheduler = run.scheduler
    planned = scheduler.lane_text(units[-1], run.pending(units[-1:]))
    return replace(
        explanation,
        state=query.state,
        cause=_cause(query),
        shares_code_with=[member for member in members if member != name],
        shape=shape,
        group_sql=sql,
        lane=run.engine.lane_text(units[-1], planned),
        train=scheduler.rows.train_text(units[-1], scheduler.call_s, scheduler.lane),
        order=scheduler.order_text(units[-1]),
        shedding=_shedding_text(query, run.shedding(units)),
        unmet=run.unmet(units[-1]),
        statistics=_figures(query),
        next_train=scheduler.rows.next_train(units[0]),
        behind=run.pending(units),
    )


def drawing_of(membership: Membership, policy: str) -> Drawing:
    """Draw all queries: which streams they read, and what they share."""
    queries = _for_all(membership, lambda query: explanation_of(query, membership, policy))
    return Drawing.of(queries, membership.catalog.readable, policy)


def status_of(
    membership: Membership, run: Running, policy: str, report: Report | None = None
) -> dict[str, Any]:
    """Return the policy, the streams and every query's state and figures.

    Args:
        report: the report of the run so far, if the caller has it.
    """
    segments_by_query = membership.catalog.all_segments()
    lines = {line.name: line for line in (report or run.report(policy)).queries}
    accounts, now_s = run.engine.accounts(), run.engine.now_s()
    delays_s, recents = run.engine.added_delays_s(), recent_by_unit(run.last_minute(now_s))
    letters = run.engine.query_letters()

    def row(query: LiveQuery) -> dict[str, Any]:
        line, account = lines.get(query.name), accounts.get(query.name)
        catalog = membership.catalog
        segments = segments_by_query.get(query.name) or catalog.segments_of(query.name)
        units = [catalog.ids[path.query.name] for path in segments]
        oldest_at_s = run.oldest_arrived_at_s(units)
        seconds = now_s - (query.bound_at_s or now_s)
        recent = replace(
            recents.get(units[-1], Recent()),
            tuples=recents.get(units[0], Recent()).tuples,
        )
        total = Recent()
        if line is not None:
            first, response_s = lines.get(segments[0].query.name, line), line.response_s
            total = Recent(first.tuples_in, response_s.count, response_s.mean, response_s.p95)
        return {
            **_named(query, membership, segments),
            "state": query.state,
            "cause": _cause(query),
            "waiting": run.pending(units),
            "oldest_waiting_s": None if oldest_at_s is None else max(0.0, now_s - oldest_at_s),
            "last_minute": _rates(recent, min(seconds, minute_s(now_s))),
            "since_start": _rates(total, seconds),
            "backfilled": 0 if line is None else line.backfilled,
            "measures": {} if line is None else line.applicable,
            "mean_response_s": number(total.mean_s),
            "mean_slowdown": None if line is None else number(line.slowdown.mean),
            "added_delay_s": number(delays_s.get(query.name, nan)),
            "lane": query.lane,
            "account": None if account is None else asdict(account),
            "dead_letters": letters.get(query.name, 0),
            "shedding": run.shedding(units),
            "unmet": run.unmet(units[-1]),
            "statistics": _figures(query),
        }

    return {
        "policy": policy, "streams": list(membership.catalog.readable),
        "stream_troubles": [asdict(trouble) for trouble in run.engine.troubles()],
        "stream_lags": [asdict(lag) for lag in run.engine.lags()],
        "dead_letters": run.engine.dead_letters(), "queries": _for_all(membership, row),
    }  # fmt: skip


def health_of(membership: Membership) -> dict[str, Any]:
    """Return whether a run works, in numbers only: anybody on this machine may ask."""
    run = membership.run
    failed = sum(query.error is not None for query in tuple(membership.queries.values()))
    troubles = () if run is None else run.engine.troubles()
    stopped = sum(trouble.state == "STOPPED" for trouble in troubles)
    ended = run is not None and not run.is_alive
    return {
        "healthy": not (failed or stopped or ended), "ready": run is not None and not ended,
        "failed_queries": failed, "stopped_streams": stopped,
    }  # fmt: skip


def starting(membership: Membership, policy: str, rehearsed_of: tuple[int, int]) -> dict[str, Any]:
    """Return the status before the first tuple, with how many queries are rehearsed so far.

    Args:
        rehearsed_of: the number of queries rehearsed, and the number to rehearse.
    """

    def row(query: LiveQuery) -> dict[str, Any]:
        return {
            **_named(query, membership, membership.catalog.segments_of(query.name)),
            "state": "STARTING", "cause": None, "waiting": 0,
            "oldest_waiting_s": None, "last_minute": _rates(Recent(), 0.0),
            "since_start": _rates(Recent(), 0.0), "backfilled": 0, "measures": {},
            "mean_response_s": None, "mean_slowdown": None, "added_delay_s": None, "lane": None,
            "account": None, "dead_letters": 0, "shedding": None, "unmet": None, "statistics": {},
        }  # fmt: skip

    done, total = rehearsed_of
    return {
        "policy": policy, "streams": list(membership.catalog.readable), "stream_troubles": [],
        "stream_lags": [], "dead_letters": {},
        "queries": _for_all(membership, row), "starting": {"rehearsed": done, "of": total},
    }  # fmt: skip


def _for_all(membership: Membership, describe: Callable[[LiveQuery], T]) -> list[T]:
    """Return the descriptions of all queries, except one that is dropped at this moment."""
    descriptions = []
    for query in tuple(membership.queries.values()):
        with suppress(UnknownName, KeyError):
            descriptions.append(describe(query))
    return descriptions


def _named(query: LiveQuery, membership: Membership, segments: Sequence[Path]) -> dict[str, Any]:
    model, catalog = query.path.query, membership.catalog
    raised = query.path.into is not None  # perhaps, to the class of a reader
    return {
        "query": query.name,
        "id": query.id,
        "version": query.path.version,
        "class": catalog.class_of(query.name) if raised else segments[-1].query.query_class,
        "stream": segments[0].stream,
        "weight": model.weight,
        "deadline_s": model.deadline_s,
        "qos": None if model.qos is None else model.qos.points,
    }


def _cause(query: LiveQuery) -> str | None:
    return None if query.error is None else str(query.error)


def _shedding_text(query: LiveQuery, shedding: dict[str, Any] | None) -> str | None:
    """Return what a query drops at present, in words; None if it never drops anything."""
    if not query.path.query.allows_shedding:
        return None
    if shedding is None:
        return "allowed, nothing at present"
    return f"{shedding['fraction']:.0%} of its tuples: {shedding['reason']}"


def _rates(recent: Recent, seconds: float) -> dict[str, float | None]:
    """Return counts, rates, mean and p95 of what a query did in a time."""
    return {
        "tuples": recent.tuples, "results": recent.results,
        "tuples_per_s": recent.tuples / seconds if seconds > 0 else None,
        "results_per_s": recent.results / seconds if seconds > 0 else None,
        "mean_response_s": number(recent.mean_s), "p95_response_s": number(recent.p95_s),
    }  # fmt: skip


def _figures(query: LiveQuery) -> dict[str, float | None]:
    return {key: number(value) for key, value in query.statistics().items()}
