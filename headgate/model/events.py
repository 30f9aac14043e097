"""Everything that can happen, as frozen data: metrics fold over it, policies hear it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headgate.model.arrays import Floats, Ints
from headgate.model.network import Network
from headgate.model.plan import BoxCall
from headgate.model.query import QueryStatistics


@dataclass(frozen=True, slots=True)
class TrainArrived:
    """Consecutive trains of one stream are in its log; the arrays have one entry a train."""

    at_s: float
    stream: int
    tuples: Ints
    head_arrived_at_s: Floats
    mean_arrived_at_s: Floats
    more_follow: bool = False
    """Something else of the same instant comes next; no decision falls between."""
    tuple_bytes: float = 0.0
    """What a tuple takes in memory, where it is known."""


@dataclass(frozen=True, slots=True)
class StepStarted:
    """A call was given to a worker."""

    at_s: float
    call: BoxCall


@dataclass(frozen=True, slots=True)
class ConditionSample:
    """A query's conditions, evaluated one by one over a few tuples; one entry a condition.

    Args:
        tuples: how many a condition was evaluated over; one that may fail sees only those that
            pass all conditions written before it.
        passed: how many of them it holds for.
        seconds: what the evaluation took, less what an empty condition takes.
    """

    unit: int
    tuples: tuple[int, ...]
    passed: tuple[int, ...]
    seconds: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class StepFinished:
    """A call is done and its results are committed; tuples have one entry a unit.

    `failed` are units of the call that have taken nothing: they stay where they stood.
    """

    at_s: float
    call: BoxCall
    seconds: float
    tuples_out: tuple[int, ...]
    responses_s: tuple[Floats, ...]
    more_follow: bool = False
    """As of trains: another call ends at the same instant."""
    failed: tuple[int, ...] = ()
    lane: str = ""
    """How the engine ran it, where it has several ways."""
    instants: tuple[int, ...] = ()
    """What counts as output for S: of an aggregate the windows that have closed, whatever groups
    these have (Sharaf §3.5). Empty where that is the tuples that came out."""
    samples: tuple[ConditionSample, ...] = ()
    """Of units whose conditions were measured after the call."""


@dataclass(frozen=True, slots=True)
class UnitFailed:
    """A unit could not finish its call and runs no more; the call's other units have finished."""

    at_s: float
    unit: int
    call: BoxCall
    error: Exception


@dataclass(frozen=True, slots=True)
class UnitDelayed:
    """A unit could not finish its call and is tried again, not before `until_s`."""

    at_s: float
    unit: int
    until_s: float
    error: Exception


@dataclass(frozen=True, slots=True)
class ClockTicked:
    """The instant that the scheduler asked to be woken at has come."""

    at_s: float


@dataclass(frozen=True, slots=True)
class Overloaded:
    """A budget is used up: until then, tuples must go where queries allow it."""

    at_s: float
    until_s: float


@dataclass(frozen=True, slots=True)
class TuplesShed:
    """A unit passes over trains first, ..., end − 1 without seeing them."""

    at_s: float
    unit: int
    first_train: int
    end_train: int
    tuples: int


@dataclass(frozen=True, slots=True)
class QueryStopped:
    """Somebody has stopped a query; its unit runs no more."""

    at_s: float
    unit: int


@dataclass(frozen=True, slots=True)
class NetworkChanged:
    """Streams or queries have come; those that were there keep their numbers.

    A query that comes may have the number of one that was dropped.

    Args:
        cursors: by unit that is new, the train it begins with.
        first_trains: by stream that is new, where its log begins.
        known: figures of new queries, by name.
        groups: a number for every unit, the same for those whose code the engine shares.
        kept: by stream that new units read, its trains from where the first of them begins: others
            may have passed them long ago.
    """

    at_s: float
    network: Network
    cursors: Mapping[int, int]
    first_trains: Mapping[int, int]
    known: Mapping[str, QueryStatistics]
    groups: tuple[int, ...] = ()
    kept: Mapping[int, TrainArrived] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PolicyChanged:
    """Another policy decides from now on."""

    at_s: float
    policy: Any


@dataclass(frozen=True, slots=True)
class Measured:
    """What the run was worth since the last such event, by the metric's name.

    Names are those of `metrics.names`: `mean_response_s`, `output_per_s`, `pending`, ...
    """

    at_s: float
    seconds: float
    values: Mapping[str, float]


Event = (
    TrainArrived
    | StepStarted
    | StepFinished
    | UnitFailed
    | UnitDelayed
    | ClockTicked
    | Overloaded
    | TuplesShed
    | QueryStopped
    | NetworkChanged
    | PolicyChanged
    | Measured
)


def units_in(event: Event) -> tuple[int, ...]:
    """Gives the units that an event is about."""
    match event:
        case StepStarted() | StepFinished():
            return event.call.units
        case UnitFailed() | UnitDelayed() | QueryStopped() | TuplesShed():
            return (event.unit,)
    return ()
