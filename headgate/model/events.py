"""Events: everything that can happen in a run, as frozen data for metrics and policies.

Outside the scheduler, units are named by their ids (`Network.ids`), inside by their rows.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headgate.model.arrays import Floats, Ints
from headgate.model.network.network import Network
from headgate.model.plan import BoxCall
from headgate.model.query import QueryStatistics


@dataclass(frozen=True, slots=True)
class TrainArrived:
    """Consecutive trains of one stream are now in its log; the arrays have one entry per train."""

    at_s: float
    stream: int
    tuples: Ints
    head_arrived_at_s: Floats
    mean_arrived_at_s: Floats
    more_follow: bool = False
    """Whether another event of the same instant follows; no decision is made in between."""
    tuple_bytes: float = 0.0
    """Bytes of memory per tuple; 0 where unknown."""
    bounds: tuple[int, ...] = ()
    """The places of trains without tuples: a stream that has none has come further (BZ §4.1)."""


@dataclass(frozen=True, slots=True)
class StepStarted:
    """A call was handed to a worker."""

    at_s: float
    call: BoxCall


@dataclass(frozen=True, slots=True)
class ConditionSample:
    """A query's conditions, evaluated one by one over a few tuples; one entry per condition.

    Args:
        tuples: the number of tuples a condition was evaluated over. A condition that may fail sees
            only those that pass all conditions written before it.
        passed: the number of these tuples for which the condition holds.
        seconds: the time of the evaluation, less that of an empty condition.
    """

    unit: int
    tuples: tuple[int, ...]
    passed: tuple[int, ...]
    seconds: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class StepFinished:
    """A call has ended and its results are committed; the tuple fields have one entry per unit.

    `failed` are units of the call that have consumed nothing: their cursors have not moved.
    """

    at_s: float
    call: BoxCall
    seconds: float
    tuples_out: tuple[int, ...]
    responses_s: tuple[Floats, ...]
    more_follow: bool = False
    """Whether another event of the same instant follows, as in `TrainArrived`."""
    failed: tuple[int, ...] = ()
    lane: str = ""
    """How the engine ran the call, if it has several ways."""
    instants: tuple[int, ...] = ()
    """By unit, the number of outputs that counts for S. For an aggregate it is the number of closed
    windows, however many groups they have (Sharaf §3.5). Empty where S counts output tuples."""
    tardiness_s: tuple[Floats, ...] = ()
    """By unit, how late each result of a time window is: from the window's end on the arrival clock
    or, for event time, from the arrival that moved the watermark past it. Empty without windows."""
    idle_s: tuple[Floats, ...] = ()
    """By unit, how long each result of a union waited for other streams (idle waiting, BZ §4.1).
    That is part of its response. Empty without unions."""
    backfilled: tuple[int, ...] = ()
    """By unit, the number of results of tuples that were in the log before its query was added.
    They have no response time. Empty if there are none."""
    shed: tuple[int, ...] = ()
    """By unit, how many tuples of the call it has dropped. Empty where none has."""
    cpu_s: float | None = None
    """The CPU time of the call, with that of its tasks; None where only its seconds are known."""
    samples: tuple[ConditionSample, ...] = ()
    """Samples of the units whose conditions were measured after the call."""
    commit_s: float = 0.0
    """The time from the first result that was written to the commit, if the engine measures it."""

    def scheduled_s(self, place: int) -> Floats:
        """Return the responses of the unit at a place without what a schedule cannot change."""
        responses_s = self.responses_s[place]
        return responses_s - self.idle_s[place] if self.idle_s else responses_s


@dataclass(frozen=True, slots=True)
class UnitFailed:
    """A unit could not finish its call and has stopped; the call's other units have finished."""

    at_s: float
    unit: int
    call: BoxCall
    error: Exception


@dataclass(frozen=True, slots=True)
class UnitDelayed:
    """A unit could not finish its call, which is retried at `until_s` or later."""

    at_s: float
    unit: int
    until_s: float
    error: Exception


@dataclass(frozen=True, slots=True)
class ClockTicked:
    """The instant has come at which the scheduler asked to be woken."""

    at_s: float


@dataclass(frozen=True, slots=True)
class Overloaded:
    """A budget is used up, or still will be until `until_s`."""

    at_s: float
    until_s: float


@dataclass(frozen=True, slots=True)
class SheddingChanged:
    """From a train on, a unit drops a fraction of its tuples; `Drop` says which."""

    at_s: float
    unit: int
    first_train: int
    fraction: float
    reason: str


@dataclass(frozen=True, slots=True)
class QueryStopped:
    """A query was stopped on request; its unit no longer runs."""

    at_s: float
    unit: int


@dataclass(frozen=True, slots=True)
class NetworkChanged:
    """Streams or queries were added, or queries dropped; existing streams keep their numbers.

    A dropped query is no longer in the network, so the positions of others change, but not their
    ids.

    Args:
        cursors: by id of a unit that is new, or that was stopped and starts again, the train it
            begins with.
        first_trains: by new stream, the first train of its log.
        known: statistics of new queries, by name.
        groups: a number per unit, equal for units whose code the engine shares.
        kept: by stream that these units read, its trains from the first one that they need.
            Other units may have passed these trains long ago.
    """

    at_s: float
    network: Network
    cursors: Mapping[int, int]
    first_trains: Mapping[int, int]
    known: Mapping[str, QueryStatistics]
    groups: tuple[int, ...] = ()
    kept: Mapping[int, TrainArrived] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()
    """The names of queries that the network no longer has."""
    changed: tuple[int, ...] = ()
    """The ids of units whose query has another class, weight, deadline or QoS graph."""


@dataclass(frozen=True, slots=True)
class PolicyChanged:
    """A new policy decides from now on."""

    at_s: float
    policy: Any


@dataclass(frozen=True, slots=True)
class SourcePolled:
    """Polls of a stream's source, most of them in vain, have taken CPU time."""

    at_s: float
    stream: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Measured:
    """The value of each metric since the last such event, by the metric's name.

    Names are those of `performance.METRICS`: `mean_response_s`, `output_per_s`, `pending`, ...

    Args:
        with_waiting: the same, where tuples that still wait count as if they left now.
        arrived: tuples that have arrived.
        waiting: tuples that wait now, in all queues.
    """

    at_s: float
    seconds: float
    values: Mapping[str, float]
    with_waiting: Mapping[str, float] = field(default_factory=dict)
    arrived: float = 0.0
    waiting: float = 0.0


Event = (
    TrainArrived
    | StepStarted
    | StepFinished
    | UnitFailed
    | UnitDelayed
    | ClockTicked
    | Overloaded
    | SheddingChanged
    | QueryStopped
    | NetworkChanged
    | PolicyChanged
    | SourcePolled
    | Measured
)


def units_in(event: Event) -> tuple[int, ...]:
    """Return the units that an event is about."""
    match event:
        case StepStarted() | StepFinished():
            return event.call.units
        case UnitFailed() | UnitDelayed() | QueryStopped() | SheddingChanged():
            return (event.unit,)
    return ()
