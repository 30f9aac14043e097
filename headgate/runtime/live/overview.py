"""The overview of a run for a page: small, flat, and the same from one second to the next."""

from collections import Counter
from contextlib import suppress
from math import nan
from typing import Any

from headgate.metrics.last_minute import Recent, minute_s, recent_by_group
from headgate.metrics.line import Line
from headgate.metrics.report import Report
from headgate.policies import Policy
from headgate.policies.amos import Amos
from headgate.runtime.describe.explanation import number
from headgate.runtime.live.amos_library import amos_of
from headgate.runtime.live.status import status_of
from headgate.runtime.members.membership import Membership
from headgate.runtime.run.run import Running

COUNTS = ("delivered", "shed", "missed", "late", "dead_lettered")
"""What a page shows of the account of a query."""

RATES = ("tuples_per_s", "results_per_s", "mean_response_s", "p95_response_s")
SINCE_START = ("tuples", "results", "mean_response_s", "p95_response_s")


def overview_of(
    membership: Membership, run: Running, policy: str, used: dict[str, float]
) -> dict[str, Any]:
    """Return the state and figures of a run, its classes and its queries, each by name.

    Args:
        policy: the policy in charge, in words.
        used: the shares of the budgets that are in use.
    """
    now_s, report = run.engine.now_s(), run.report(policy)
    status = status_of(membership, run, policy, report)
    rows = {row["query"]: _row(row) for row in status["queries"]}
    _count_shared(rows, membership, run)
    return {
        "seconds": report.seconds,
        "policy": policy,
        "deciding": _deciding(run.scheduler.policy, now_s),
        "workers": run.workers,
        "busy": run.scheduler.running,
        "used": used,
        "overhead_s": {
            "scheduler": report.scheduler_s, "storage": report.storage_s,
            "calls": report.overhead_s, "busy": report.total.busy_s,
        },
        "classes": _classes(membership, run, report, rows, now_s),
        "queries": rows,
        "streams": status["streams"],
        "troubles": status["stream_troubles"],
        # An instant is whole: figures are rounded to a few digits on their way to a page.
        "lags": {lag["stream"]: {"behind_s": lag["behind_s"], "since_s": int(lag["since_s"])}
                 for lag in status["stream_lags"]},
        "dead_letters": status["dead_letters"],
        "amos": amos_of(run.scheduler.policy),
    }  # fmt: skip


def _count_shared(rows: dict[str, Any], membership: Membership, run: Running) -> None:
    """Add to the row of each query with how many others it shares its code."""
    groups, places = run.engine.groups, run.scheduler.rows.network.places
    if len(groups) != len(places):  # it changes at this moment
        return
    sizes, ids = Counter(groups), membership.catalog.ids
    for name, row in rows.items():
        place = places.get(ids.get(name, -1))
        if place is not None:
            row["shared_with"] = sizes[groups[place]] - 1


def _deciding(policy: Policy, now_s: float) -> str:
    """Return the name of the policy that decides: under `amos`, the one whose turn it is."""
    return (policy.in_charge(now_s) if isinstance(policy, Amos) else policy).name


def _row(row: dict[str, Any]) -> dict[str, Any]:
    """Return a query of the status without nesting."""
    account, statistics = row["account"] or {}, row["statistics"]
    keys = (
        "id", "version", "class", "stream", "weight", "deadline_s", "qos", "state", "cause",
        "waiting", "oldest_waiting_s", "mean_slowdown", "lane", "added_delay_s",
    )  # fmt: skip
    return {
        **{key: row[key] for key in keys},
        **{key: row["last_minute"][key] for key in RATES},
        **{f"{key}_since_start": row["since_start"][key] for key in SINCE_START},
        **{key: account.get(key, 0) for key in COUNTS},
        **{key: statistics.get(key) for key in ("selectivity", "tuple_cost_s", "ideal_s")},
        "measures": row["measures"],
    }


def _classes(
    membership: Membership, run: Running, report: Report, rows: dict[str, Any], now_s: float
) -> dict[str, Any]:
    """Return the figures of every class, the most important one first."""
    catalog = membership.catalog
    last_units, first_units = dict[int, str](), dict[int, str]()
    for name, segments in catalog.all_segments().items():
        with suppress(KeyError):  # dropped at this moment
            query_class = rows[name]["class"]
            first_units[catalog.ids[segments[0].query.name]] = query_class
            last_units[catalog.ids[segments[-1].query.name]] = query_class
    counts = run.last_minute(now_s)
    results, inputs = recent_by_group(counts, last_units), recent_by_group(counts, first_units)
    lines = {line.name: line for line in report.classes}
    seconds = min(max(report.seconds, 1e-9), minute_s(now_s))
    classes = sorted(catalog.classes, key=lambda query_class: -query_class.priority)
    return {
        query_class.name: {
            "priority": query_class.priority,
            "target_s": query_class.target_s,
            **_figures(
                results.get(query_class.name, Recent()),
                inputs.get(query_class.name, Recent()),
                lines.get(query_class.name),
                seconds,
            ),
            **_sums([row for row in rows.values() if row["class"] == query_class.name]),
        }
        for query_class in classes
    }


def _figures(results: Recent, inputs: Recent, line: Line | None, seconds: float) -> dict[str, Any]:
    return {
        "mean_response_s": number(results.mean_s),
        "p95_response_s": number(results.p95_s),
        "results_per_s": results.results / seconds,
        "tuples_per_s": inputs.tuples / seconds,
        "qos": None if line is None else number(line.qos),
        "staleness": None if line is None else number(line.staleness),
        "tardiness_s": None if line is None else number(line.tardiness_s),
    }


def _sums(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what the queries of a class add up to, and the shortest of their deadlines."""
    deadlines_s = [row["deadline_s"] for row in rows if row["deadline_s"] is not None]
    shortest_s = number(min(deadlines_s, default=nan))
    return {
        "queries": len(rows),
        "failed": sum(row["state"] == "FAILED" for row in rows),
        "deadline_s": shortest_s,
        **{key: sum(row[key] for row in rows) for key in ("waiting", *COUNTS)},
    }
