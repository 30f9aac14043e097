"""The exception family: the class says who must act, the fields carry the facts."""

from collections.abc import Iterable
from difflib import get_close_matches


class HeadgateError(Exception):
    """Every error that Headgate raises on purpose."""


class QueryRefused(HeadgateError):
    """A text that cannot run as a continuous query."""

    def __init__(
        self,
        *,
        query: str,
        clause: str,
        reason: str,
        fix: str,
        line: int | None = None,
        column: int | None = None,
    ) -> None:
        super().__init__(query, clause, reason, fix, line, column)
        self.query, self.clause, self.reason, self.fix = query, clause, reason, fix
        self.line, self.column = line, column

    def __str__(self) -> str:
        place = f", line {self.line}" if self.line is not None else ""
        place += f", column {self.column}" if self.column is not None else ""
        return f"query '{self.query}'{place}: {self.clause} {self.reason}.\nFix: {self.fix}"


class ConfigRefused(HeadgateError):
    """A pipeline file, or a value in it, that cannot be used."""

    def __init__(self, *, path: str, key: str, value: object, expected: str) -> None:
        super().__init__(path, key, value, expected)
        self.path, self.key, self.value, self.expected = path, key, value, expected

    def __str__(self) -> str:
        found = "" if self.value is None else f" is {self.value!r}, but"
        return f"{self.path}: {self.key or 'the file'}{found} must be {self.expected}."


class UnknownName(HeadgateError):
    """A policy, stream, query or class that nobody has defined."""

    def __init__(self, *, kind: str, name: str, known: Iterable[str], where: str = "") -> None:
        known = sorted(known)
        super().__init__(kind, name, known, where)
        self.kind, self.name, self.known, self.where = kind, name, known, where
        self.nearest = next(iter(get_close_matches(name, known, n=1, cutoff=0.5)), None)

    def __str__(self) -> str:
        hint = f"Did you mean '{self.nearest}'? " if self.nearest else ""
        known = ", ".join(self.known) or "none yet"
        where = f"{self.where}: " if self.where else ""
        return f"{where}there is no {self.kind} '{self.name}'. {hint}Known: {known}."


class PlanRejected(HeadgateError):
    """A policy returned a plan that cannot be executed."""

    def __init__(self, *, policy: str, unit: int, reason: str) -> None:
        super().__init__(policy, unit, reason)
        self.policy, self.unit, self.reason = policy, unit, reason

    def __str__(self) -> str:
        return f"policy '{self.policy}' planned unit {self.unit}, which {self.reason}."


class StepFailed(HeadgateError):
    """The engine could not finish a step."""

    def __init__(
        self,
        *,
        query: str,
        stream: str,
        trains: tuple[int, int],
        attempts: int,
        cause: str,
        fix: str = "correct the query or the data",
    ) -> None:
        super().__init__(query, stream, trains, attempts, cause, fix)
        self.query, self.stream, self.trains = query, stream, trains
        self.attempts, self.cause, self.fix = attempts, cause, fix

    def __str__(self) -> str:
        return (
            f"query '{self.query}' failed on trains {self.trains[0]}..{self.trains[1]} of stream"
            f" '{self.stream}' after {self.attempts} attempts: {self.cause}\n"
            f"Its input is kept and the other queries go on. Fix: {self.fix} and start again; it"
            " resumes at the same train."
        )


class StreamFailed(HeadgateError):
    """A stream's source stopped delivering."""

    def __init__(self, *, stream: str, cause: str) -> None:
        super().__init__(stream, cause)
        self.stream, self.cause = stream, cause

    def __str__(self) -> str:
        return (
            f"stream '{self.stream}' stopped: {self.cause}\n"
            "What had arrived is processed. Fix: restore the source and start again."
        )


class RowFailed(HeadgateError):
    """A query's own error, at a tuple of its stream."""

    def __init__(self, *, cause: str, stream: str, number: int | None, values: str) -> None:
        super().__init__(cause, stream, number, values)
        self.cause, self.stream, self.number, self.values = cause, stream, number, values

    def __str__(self) -> str:
        which = "a tuple" if self.number is None else f"tuple {self.number}"
        values = f" ({self.values})" if self.values else ""
        return f"{self.cause}, at {which} of stream '{self.stream}'{values}"


class RecordsLost(StreamFailed):
    """Records of Kafka that were deleted before the stream had them."""

    def __init__(
        self, *, stream: str, place: str, expected: int, first: int | None, end: int | None
    ) -> None:
        if first is None or end is None:
            cause = (
                f"{place} is gone, or another has its name; its next record had offset {expected}"
            )
        elif expected < first:
            cause = (
                f"{first - expected} records of {place} are gone: the next had offset {expected},"
                f" the first that is left has {first}"
            )
        else:
            cause = f"{place} ends at offset {end}, but its next record had {expected}"
        super().__init__(stream=stream, cause=cause)
        self.args = (stream, place, expected, first, end)
        self.place, self.expected, self.first, self.end = place, expected, first, end

    def __str__(self) -> str:
        return (
            f"stream '{self.stream}' stopped: {self.cause}.\n"
            "What had arrived is processed. Fix: set the stream's option failOnDataLoss to false to"
            " go on without them, and start again; let the topic keep its records for longer."
        )


class RecoveryRefused(HeadgateError):
    """What a state directory holds does not fit what is asked of it."""

    def __init__(self, *, subject: str, expected: str, found: str, fix: str) -> None:
        super().__init__(subject, expected, found, fix)
        self.subject, self.expected, self.found, self.fix = subject, expected, found, fix

    def __str__(self) -> str:
        return f"{self.subject}: expected {self.expected}, found {self.found}.\nFix: {self.fix}"


class RequestRefused(HeadgateError):
    """A running Headgate has refused what it was asked for."""

    def __init__(self, *, message: str, added: Iterable[str] = ()) -> None:
        self.message, self.added = message, list(added)
        super().__init__(message, self.added)

    def __str__(self) -> str:
        before = f"\nAdded before that: {', '.join(self.added)}." if self.added else ""
        return f"{self.message}{before}"


class TrainUnreadable(HeadgateError):
    """A file of the log that cannot be read."""

    def __init__(self, *, stream: str, train: int, file: str, cause: str) -> None:
        super().__init__(stream, train, file, cause)
        self.stream, self.train, self.file, self.cause = stream, train, file, cause

    def __str__(self) -> str:
        return (
            f"train {self.train} of stream '{self.stream}' cannot be read: {self.cause}"
            f" ({self.file}). Fix: restore this file from a copy"
        )


class SinkUnwritable(HeadgateError):
    """A results directory that takes no file."""

    def __init__(self, *, folder: str, cause: str) -> None:
        super().__init__(folder, cause)
        self.folder, self.cause = folder, cause
        self.fix = f"make the directory {folder} writable, with room on its disk,"

    def __str__(self) -> str:
        return f"its results cannot be written to {self.folder}: {self.cause}"


class LogUnwritable(HeadgateError):
    """The log of a stream that a query fills takes no train."""

    def __init__(self, *, stream: str, cause: str) -> None:
        super().__init__(stream, cause)
        self.stream, self.cause = stream, cause

    def __str__(self) -> str:
        return f"the log of stream '{self.stream}' cannot be written: {self.cause}"


class LogFull(LogUnwritable):
    """A stream that takes no train until its readers have passed some."""

    def __init__(self, *, stream: str) -> None:
        super().__init__(stream=stream, cause="log_bytes is used up, and its readers are behind")
        self.args = (stream,)


class SinkBehind(HeadgateError):
    """A sink that does not take results, and so many wait for it that no more can."""

    fix = "bring back what takes the results: those that wait arrive by themselves;"

    def __init__(self, *, format: str, waiting_bytes: int) -> None:
        super().__init__(format, waiting_bytes)
        self.format, self.waiting_bytes = format, waiting_bytes

    def __str__(self) -> str:
        return f"its {self.format} sink takes nothing, and {self.waiting_bytes:,} bytes wait for it"


class ResultsHidden(HeadgateError):
    """Results that are certain but could not be given their names yet."""

    def __init__(self, *, folder: str) -> None:
        super().__init__(folder)
        self.folder = folder

    def __str__(self) -> str:
        return (
            f"its last results could not be made visible in {self.folder}. Fix: restore the"
            " directory, or make room there; they are tried again, and the query waits for that"
        )


class CallTimedOut(HeadgateError):
    """A call that took longer than a call may."""

    def __init__(self, *, limit_s: float) -> None:
        super().__init__(limit_s)
        self.limit_s = limit_s

    def __str__(self) -> str:
        return (
            f"it took longer than call_timeout_s, {self.limit_s:g} s, and what it may still make"
            " is not committed"
        )


class StatisticsMissing(HeadgateError):
    """A simulation was asked for, but the cost or selectivity of a query is not known."""

    def __init__(self, *, queries: Iterable[str], looked_in: str) -> None:
        self.queries = sorted(queries)
        super().__init__(self.queries, looked_in)
        self.looked_in = looked_in

    def __str__(self) -> str:
        return (
            f"cost and selectivity are not known for: {', '.join(self.queries)}"
            f" (no record of a run in {self.looked_in}, no `statistics` in the file).\n"
            "Fix: run the pipeline once so that they are measured, or give each query"
            " `statistics: {cost_s: ..., selectivity: ..., overhead_s: ...}`."
        )


class HeadgateBug(HeadgateError):
    """An invariant broke: ours to mend."""

    def __init__(self, *, what: str, state: object = None) -> None:
        super().__init__(what, state)
        self.what, self.state = what, state

    def __str__(self) -> str:
        return f"internal error: {self.what} ({self.state!r}). Please report this."
