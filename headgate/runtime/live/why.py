"""Why a result took as long as it did: its parts, and which calls ran instead."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from headgate.errors import RequestRefused, UnknownName
from headgate.model.query import QueryClass
from headgate.runtime.live.run_names import Members
from headgate.runtime.members.membership import Membership
from headgate.runtime.run.call_log import CallLog, CallRecord, LoggedTrain
from headgate.runtime.run.run import Running

MINUTE_S = 60.0


class Span(NamedTuple):
    """A part of a response time.

    Args:
        unit: the unit that the tuple was at; that of a segment or a view before the query's own.
    """

    kind: str
    from_s: float
    to_s: float
    unit: int


def why_of(membership: Membership, run: Running, name: str, at_s: float | None) -> dict[str, Any]:
    """Return why the slowest result of a call of a query took so long.

    Args:
        at_s: when the results were committed; None: the worst call of the last minute or, without
            any or after the end of the run, of all that are recorded.

    Raises:
        RequestRefused: no call with results is recorded.
    """
    membership.query(name)
    now_s = run.engine.now_s() if run.is_alive else None
    return why(run.call_log, Members.of(membership, run), name, at_s, now_s)


def why(
    call_log: CallLog, members: Members, name: str, at_s: float | None, now_s: float | None
) -> dict[str, Any]:
    """Return why the slowest result of a call of a query took so long, as `why_of`.

    Args:
        now_s: None after the end of the run.
    """
    if name not in members.ids:
        raise UnknownName(kind="query", name=name, known=members.ids)
    records = list(call_log.calls())
    unit = members.ids[name]
    record = _chosen(records, name, unit, at_s, now_s)
    return explained(call_log, records, record, unit, members)


def explained(
    call_log: CallLog,
    records: Sequence[CallRecord],
    record: CallRecord,
    unit: int,
    members: Members,
) -> dict[str, Any]:
    """Return the parts of the response time of a call's slowest result, and what ran instead."""
    response_s = record.slowest_s[unit]
    arrived_at_s = record.ended_at_s - response_s
    way = Way(call_log, records, members)
    train = way.train(record, unit, arrived_at_s)
    spans = [span for span in way.spans(record, unit, arrived_at_s) if span.to_s > span.from_s]
    streams, stream = members.streams, record.call.stream
    return {
        "query": members.names[unit],
        "call": record.call.number,
        "stream": streams[stream] if stream < len(streams) else None,
        "position": None if train is None else train.number,
        "lane": record.lane,
        "policy": record.policy,
        "arrival": arrived_at_s,
        "commit": record.ended_at_s,
        "response_s": response_s,
        "parts": [
            {"kind": kind, "segment": members.segments.get(of_unit, members.names.get(of_unit)),
             "from": from_s, "to": to_s}
            for kind, from_s, to_s, of_unit in spans
        ],
        "fused": sorted({members.names.get(number, "?") for number in record.call.units}),
        "instead": list(way.instead([span for span in spans if span.kind == "turn"], record)),
    }  # fmt: skip


def _chosen(
    records: Sequence[CallRecord], name: str, unit: int, at_s: float | None, now_s: float | None
) -> CallRecord:
    calls = [record for record in records if unit in record.slowest_s]
    if not calls:
        raise RequestRefused(
            message=f"query '{name}' has no results in the last hour of this run.\n"
            "Fix: ask again when it has"
        )
    if at_s is not None:
        return min(calls, key=lambda record: abs(record.ended_at_s - at_s))
    recent = [
        record for record in calls if now_s is not None and record.ended_at_s > now_s - MINUTE_S
    ]
    return max(recent or calls, key=lambda record: record.slowest_s[unit])


@dataclass(frozen=True)
class Way:
    """The way of a tuple through the calls of a run.

    Args:
        records: the calls, by their begin.
    """

    call_log: CallLog
    records: Sequence[CallRecord]
    members: Members
    calls_by_unit: dict[int, list[CallRecord]] = field(default_factory=dict)

    def spans(self, record: CallRecord, unit: int, arrived_at_s: float) -> Iterator[Span]:
        """Yield where a tuple was from its arrival until a call of a unit was committed."""
        train = self.train(record, unit, arrived_at_s)
        in_log_at_s = arrived_at_s if train is None else train.in_log_at_s
        in_log_at_s = min(max(in_log_at_s, arrived_at_s), record.begun_at_s)
        if train is not None and train.is_bound:
            yield from self._until_bound(record, unit, arrived_at_s, in_log_at_s)
        else:
            yield from self._until_in_log(record.call.stream, unit, arrived_at_s, in_log_at_s)
        yield from self._waiting(record, unit, max(in_log_at_s, arrived_at_s))
        begin_s = max(record.begun_at_s, arrived_at_s)
        commits_s = max(begin_s, record.ended_at_s - record.commit_s)
        yield Span("running", begin_s, commits_s, unit)
        yield Span("committing", commits_s, record.ended_at_s, unit)

    def train(self, record: CallRecord, unit: int, arrived_at_s: float) -> LoggedTrain | None:
        """Return the train with which a call could give its slowest result.

        A tuple of a union waits in the log for a later train, which moves the watermark past it.
        """
        call, idle_s = record.call, record.idle_s.get(unit)
        if idle_s is None:
            return self.call_log.train_at(call.stream, arrived_at_s, call)
        return self.call_log.train_near(call.stream, arrived_at_s + idle_s, call)

    def _until_bound(
        self, record: CallRecord, unit: int, arrived_at_s: float, in_log_at_s: float
    ) -> Iterator[Span]:
        """Yield where a tuple was until a silent stream was known to have come as far.

        A window that the bound itself has closed has no earlier tuple to wait for.
        """
        since_s = arrived_at_s
        if unit in record.idle_s:
            since_s, source = self._first_log(record.call.stream, arrived_at_s, in_log_at_s)
            yield from self._until_in_log(source, unit, arrived_at_s, since_s)
        yield Span("bound", since_s, in_log_at_s, unit)

    def _first_log(self, stream: int, arrived_at_s: float, latest_s: float) -> tuple[float, int]:
        """Return when the log of a stream of a timeline had a tuple, and which stream that is."""
        sources = self.members.sources.get(stream, (stream,))
        instants = [(self.call_log.arrival_after(source, arrived_at_s), source)
                    for source in sources]  # fmt: skip
        return min((latest_s if at_s is None else min(at_s, latest_s), source)
                   for at_s, source in instants)  # fmt: skip

    def _until_in_log(
        self, stream: int, unit: int, arrived_at_s: float, in_log_at_s: float
    ) -> Iterator[Span]:
        """Yield where a tuple was until the log that a unit reads had it."""
        producer, sources = self.members.producers.get(stream), self.members.sources.get(stream)
        if producer is not None:
            filling = [
                record
                for record in self.records
                if producer in record.call.units
                and producer not in record.failed
                and arrived_at_s < record.ended_at_s <= in_log_at_s + 1e-3
            ]
            if filling:
                last = filling[-1]
                for span in self.spans(last, producer, arrived_at_s):
                    yield span._replace(to_s=min(span.to_s, in_log_at_s))
                yield Span("log", min(last.ended_at_s, in_log_at_s), in_log_at_s, unit)
                return
        if sources:
            first_s, source = self._first_log(stream, arrived_at_s, in_log_at_s)
            yield from self._until_in_log(source, unit, arrived_at_s, first_s)
            kind = "partner" if len(sources) > 1 else "window"
            yield Span(kind, first_s, in_log_at_s, unit)
            return
        yield from self._source(unit, arrived_at_s, in_log_at_s)

    def _source(self, unit: int, from_s: float, to_s: float) -> Iterator[Span]:
        full = [Span("backpressure", *period, unit) for period in self.call_log.full()]
        yield from _filled("source", full, from_s, to_s, unit)

    def _waiting(self, record: CallRecord, unit: int, since_s: float) -> Iterator[Span]:
        """Yield what a tuple in the log waited for: its turn, an attempt that failed, a retry."""
        first = record.call.first_train
        spans = [
            Span("running", other.begun_at_s, other.ended_at_s, unit)
            for other in self.records
            if other is not record
            and unit in other.failed
            and other.call.stream == record.call.stream
            and other.call.first_train <= first
        ]
        spans += [Span("retry", *period, unit) for period in self.call_log.delays(unit)]
        spans += [Span("paused", *period, unit) for period in self.call_log.halts(unit)]
        yield from _filled("turn", spans, since_s, record.begun_at_s, unit)

    def instead(self, turns: Sequence[Span], last: CallRecord) -> Iterator[dict[str, Any]]:
        """Yield the calls that ran while a tuple waited for its turn."""
        for other in self.records:
            turn = next(
                (turn for turn in turns
                 if other.begun_at_s < turn.to_s and other.ended_at_s > turn.from_s), None,
            )  # fmt: skip
            if turn is None or other is last:
                continue
            units = other.call.units
            names = sorted({self.members.names.get(number, "?") for number in units})
            query_class = self.members.class_of(units)
            decisions, number = self.call_log.decisions, other.call.number
            priority = decisions.priority(number, units[0])
            own_priority = None
            if turn.unit not in units and other.begun_at_s >= turn.from_s:
                own_priority = decisions.priority(number, turn.unit)
            yield {
                "call": number,
                "queries": names,
                "class": None if query_class is None else query_class.name,
                "from": other.begun_at_s,
                "to": min(other.ended_at_s, turn.to_s),
                "priority": priority,
                "own_priority": own_priority,
                "reason": self._reason(other, query_class, turn, priority, own_priority),
            }

    def _ran(self, unit: int, at_s: float) -> bool:
        """Return True if a call of a unit was under way; a unit has one call at a time."""
        calls = self._calls_of(unit)
        place = bisect_right(calls, at_s, key=lambda record: record.begun_at_s)
        return place > 0 and at_s < calls[place - 1].ended_at_s

    def _calls_of(self, unit: int) -> list[CallRecord]:
        """Return the calls of a unit, in order; an hour may have a hundred thousand calls."""
        if unit not in self.calls_by_unit:
            self.calls_by_unit[unit] = [
                record for record in self.records if unit in record.call.units
            ]
        return self.calls_by_unit[unit]

    def _reason(
        self,
        other: CallRecord,
        query_class: QueryClass | None,
        turn: Span,
        priority: float | None,
        own_priority: float | None,
    ) -> str:
        """Return why a call ran before that of a unit, as far as the record says."""
        unit = turn.unit
        if unit in other.call.units:
            return "an earlier call of this query: it has one at a time"
        if other.begun_at_s <= turn.from_s:
            return "under way already: calls are not interrupted"
        if self._ran(unit, other.begun_at_s):
            return "begun while an earlier call of this query ran: it has one at a time"
        decision, own_class = (
            self.call_log.decisions.of(other.call.number), self.members.class_of([unit]),
        )  # fmt: skip
        if decision is not None and decision.measures:
            return "a query that was never measured runs first and alone"
        text = f"chosen first by {other.policy}"
        if query_class is not None and own_class is not None and query_class != own_class:
            text += (
                f"; class {query_class.name} has priority {query_class.priority:g},"
                f" class {own_class.name} {own_class.priority:g}"
            )
            quota = None if decision is None else decision.quotas.get(own_class.name)
            if quota is not None:
                left_s = quota.granted_s - quota.used_s
                text += f" and {left_s:.3g} s of its quota left"
        elif priority is not None and own_priority is not None:
            text += f"; its priority was {priority:.4g} against {own_priority:.4g}"
        if len(other.call.units) > 1:
            text += f"; {len(other.call.units)} queries shared the call"
        return text


def _filled(
    kind: str, spans: Sequence[Span], from_s: float, to_s: float, unit: int
) -> Iterator[Span]:
    """Yield the spans inside a period, without overlaps, and spans of a kind between them."""
    at_s = from_s
    for span in sorted(spans, key=lambda span: span.to_s):
        begin_s, end_s = max(span.from_s, at_s), min(span.to_s, to_s)
        if end_s > begin_s:
            if begin_s > at_s:
                yield Span(kind, at_s, begin_s, unit)
            yield Span(span.kind, begin_s, end_s, unit)
            at_s = end_s
    if to_s > at_s:
        yield Span(kind, at_s, to_s, unit)
