"""Why a result took as long as it did: its parts, and which calls ran instead."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headgate.errors import RequestRefused
from headgate.model.query import QueryClass
from headgate.runtime.members.membership import Membership
from headgate.runtime.run.call_log import CallLog, CallRecord
from headgate.runtime.run.run import Running

MINUTE_S = 60.0

Span = tuple[str, float, float]
"""A kind, and from when to when."""


@dataclass(frozen=True)
class Unit:
    """The unit whose results are explained: its id, and how others are named."""

    number: int
    query: str
    names: Mapping[int, str]
    classes: Mapping[str, QueryClass]

    @property
    def query_class(self) -> QueryClass:
        return self.classes[self.query]


def why_of(membership: Membership, run: Running, name: str, at_s: float | None) -> dict[str, Any]:
    """Return why the slowest result of a call of a query took so long.

    Args:
        at_s: when the results were committed; None: the worst call of the last minute or, without
            any, of all that are recorded.

    Raises:
        RequestRefused: no call with results is recorded.
    """
    catalog, call_log = membership.catalog, run.call_log
    membership.query(name)
    segments = catalog.all_segments()
    by_name = {query_class.name: query_class for query_class in catalog.classes}
    unit = Unit(
        catalog.ids_of(name)[-1], name,
        run.names | {
            catalog.ids[path.query.name]: query for query, paths in segments.items()
            for path in paths if path.query.name in catalog.ids
        },
        {query: by_name[catalog.class_of(query)] for query in segments},
    )  # fmt: skip
    records = list(call_log.calls())
    record = _chosen(records, unit, at_s, run.engine.now_s())
    stream = membership.catalog.streams[record.call.stream].name
    return {"stream": stream, **explained(call_log, records, record, unit)}


def explained(
    call_log: CallLog, records: Sequence[CallRecord], record: CallRecord, unit: Unit
) -> dict[str, Any]:
    """Return the parts of the response time of a call's slowest result, and what ran instead."""
    response_s = record.slowest_s[unit.number]
    arrived_at_s = record.ended_at_s - response_s
    train = call_log.train_at(record.call.stream, arrived_at_s, record.call)
    in_log_at_s = arrived_at_s if train is None else train[1]
    in_log_at_s = min(max(in_log_at_s, arrived_at_s), record.begun_at_s)
    spans = [
        ("source", arrived_at_s, in_log_at_s),
        *_waiting(call_log, records, record, unit.number, in_log_at_s),
        ("running", max(record.begun_at_s, arrived_at_s), record.ended_at_s),
    ]
    turns = [(begin_s, end_s) for kind, begin_s, end_s in spans if kind == "turn"]
    return {
        "query": unit.query,
        "call": record.call.number,
        "train": None if train is None else train[0],
        "lane": record.lane,
        "policy": record.policy,
        "arrival": arrived_at_s,
        "commit": record.ended_at_s,
        "response_s": response_s,
        "parts": [
            {"kind": kind, "from": begin_s, "to": end_s}
            for kind, begin_s, end_s in spans
            if end_s > begin_s
        ],
        "fused": sorted({unit.names.get(number, "?") for number in record.call.units}),
        "instead": list(_instead(records, record, unit, turns)),
    }


def _chosen(
    records: Sequence[CallRecord], unit: Unit, at_s: float | None, now_s: float
) -> CallRecord:
    calls = [record for record in records if unit.number in record.slowest_s]
    if not calls:
        raise RequestRefused(
            message=f"query '{unit.query}' has no results in the last hour of this run.\n"
            "Fix: ask again when it has"
        )
    if at_s is not None:
        return min(calls, key=lambda record: abs(record.ended_at_s - at_s))
    recent = [record for record in calls if record.ended_at_s > now_s - MINUTE_S]
    return max(recent or calls, key=lambda record: record.slowest_s[unit.number])


def _waiting(
    call_log: CallLog,
    records: Sequence[CallRecord],
    record: CallRecord,
    unit: int,
    since_s: float,
) -> Iterator[Span]:
    """Yield what a tuple in the log waited for: its turn, an attempt that failed, or a retry."""
    first = record.call.first_train
    spans: list[Span] = [
        ("running", other.begun_at_s, other.ended_at_s)
        for other in records
        if other is not record
        and unit in other.failed
        and other.call.stream == record.call.stream
        and other.call.first_train <= first
    ]
    spans += [("retry", begin_s, end_s) for begin_s, end_s in call_log.delays(unit)]
    at_s = since_s
    for kind, begin_s, end_s in sorted(spans, key=lambda span: span[1]):
        begin_s, end_s = max(begin_s, at_s), min(end_s, record.begun_at_s)
        if end_s > begin_s:
            if begin_s > at_s:
                yield "turn", at_s, begin_s
            yield kind, begin_s, end_s
            at_s = end_s
    if record.begun_at_s > at_s:
        yield "turn", at_s, record.begun_at_s


def _instead(
    records: Sequence[CallRecord],
    record: CallRecord,
    unit: Unit,
    turns: Sequence[tuple[float, float]],
) -> Iterator[dict[str, Any]]:
    """Yield the calls that ran while a tuple waited for its turn."""
    own_spans = [
        (other.begun_at_s, other.ended_at_s) for other in records if unit.number in other.call.units
    ]
    for other in records:
        if other is record or not any(
            other.begun_at_s < end_s and other.ended_at_s > begin_s for begin_s, end_s in turns
        ):
            continue
        queries = sorted({unit.names.get(number, "?") for number in other.call.units})
        query_class = next((unit.classes[name] for name in queries if name in unit.classes), None)
        yield {
            "call": other.call.number,
            "queries": queries,
            "class": None if query_class is None else query_class.name,
            "from": other.begun_at_s,
            "to": min(other.ended_at_s, record.begun_at_s),
            "reason": _reason(other, query_class, unit, turns[0][0], own_spans),
        }


def _reason(
    other: CallRecord,
    query_class: QueryClass | None,
    unit: Unit,
    waited_since_s: float,
    own_spans: Sequence[tuple[float, float]],
) -> str:
    """Return why a call ran before that of a unit, as far as the record says.

    Args:
        own_spans: when calls of the unit ran.
    """
    own_class = unit.query_class
    if unit.number in other.call.units:
        return "an earlier call of this query: it has one at a time"
    if other.begun_at_s <= waited_since_s:
        return "under way already: calls are not interrupted"
    if any(begin_s <= other.begun_at_s < end_s for begin_s, end_s in own_spans):
        return "begun while an earlier call of this query ran: it has one at a time"
    if query_class is None or query_class.name == own_class.name:
        return f"chosen first by {other.policy}"
    return (
        f"chosen first by {other.policy}; class {query_class.name} has priority"
        f" {query_class.priority:g}, class {own_class.name} {own_class.priority:g}"
    )
