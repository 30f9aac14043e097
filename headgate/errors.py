"""The exception family: the class says who must act, the fields carry the facts."""

from collections.abc import Iterable
from difflib import get_close_matches


class HeadgateError(Exception):
    """Every error that Headgate raises on purpose."""


class QueryRefused(HeadgateError):
    """A query text that cannot run continuously."""

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

    def __init__(
        self, *, path: str, key: str, value: object, expected: str, line: int | None = None
    ) -> None:
        super().__init__(path, key, value, expected, line)
        self.path, self.key, self.value, self.expected = path, key, value, expected
        self.line = line

    def __str__(self) -> str:
        line = "" if self.line is None else f", line {self.line}"
        return f"{self.path}{line}: {self.fault}"

    @property
    def fault(self) -> str:
        """What is wrong with which key, without the file."""
        actual = "" if self.value is None else f" is {self.value!r}, but"
        return f"{self.key or 'the file'}{actual} must be {_ended(self.expected)}"


def _ended(sentence: str) -> str:
    return sentence if sentence.endswith("?") else f"{sentence}."


class UnknownKey(ConfigRefused):
    """A key of a pipeline file that does not exist; `key` is its whole path."""

    def __init__(self, *, path: str, key: str, keys: Iterable[str]) -> None:
        names = sorted(keys)
        super().__init__(path=path, key=key, value=None, expected=f"one of {', '.join(names)}")
        self.parent, _, self.name = key.rpartition(".")
        self._has_options = "options" in names
        # `path` is an option of files, and no misspelled `late_path`.
        cutoff = 0.75 if self._has_options else 0.6
        self.nearest = next(iter(get_close_matches(self.name, names, n=1, cutoff=cutoff)), None)

    @property
    def fault(self) -> str:
        place = f"{self.parent}: " if self.parent else ""
        hint = f"did you mean '{self.nearest}'?" if self.nearest else f"use {self.expected}"
        if self._has_options and not self.nearest:
            hint = f"write `options: {{{self.name}: ...}}` for an option of the format, or {hint}"
        return f"{place}unknown key '{self.name}'; {hint}"


class OptionRefused(HeadgateError):
    """An option of a source or sink that cannot be used; the caller names the stream or query."""

    def __init__(self, *, option: str, value: object, expected: str) -> None:
        super().__init__(option, value, expected)
        self.option, self.value, self.expected = option, value, expected

    @property
    def key(self) -> str:
        """The option as a key of the stream or sink; if the option is not known, all of them."""
        return f"options.{self.option}".rstrip(".")

    def __str__(self) -> str:
        actual = "" if self.value is None else f" is {self.value!r}, but"
        return f"{self.key}{actual} must be {_ended(self.expected)}"


class UnknownName(HeadgateError):
    """The name of a policy, stream, query, class or the like that does not exist."""

    def __init__(self, *, kind: str, name: str, known: Iterable[str], where: str = "") -> None:
        names = sorted(known)
        super().__init__(kind, name, names, where)
        self.kind, self.name, self.known, self.where = kind, name, names, where
        self.nearest = next(iter(get_close_matches(name, names, n=1, cutoff=0.5)), None)

    def __str__(self) -> str:
        hint = f"Did you mean '{self.nearest}'? " if self.nearest else ""
        names = ", ".join(self.known) or "none yet"
        where = f"{self.where}: " if self.where else ""
        return f"{where}there is no {self.kind} '{self.name}'. {hint}Known: {names}."


class PlanRejected(HeadgateError):
    """A plan of a policy that cannot be executed."""

    def __init__(self, *, policy: str, unit: int, reason: str) -> None:
        super().__init__(policy, unit, reason)
        self.policy, self.unit, self.reason = policy, unit, reason

    def __str__(self) -> str:
        return f"policy '{self.policy}' planned unit {self.unit}, which {self.reason}."


class StepFailed(HeadgateError):
    """A step that the engine could not finish."""

    def __init__(
        self, *, query: str, stream: str, trains: tuple[int, int], attempts: int, cause: str,
        fix: str = "correct the data, or the query by `headgate alter`",
    ) -> None:  # fmt: skip
        super().__init__(query, stream, trains, attempts, cause, fix)
        self.query, self.stream, self.trains = query, stream, trains
        self.attempts, self.cause, self.fix = attempts, cause, fix

    def __str__(self) -> str:
        return (
            f"query '{self.query}' failed on trains {self.trains[0]}..{self.trains[1]} of stream"
            f" '{self.stream}' after {self.attempts} attempts: {self.cause}\n"
            f"Its input is kept and the other queries keep running. Fix: {self.fix}, then"
            f" run `headgate restart {self.query}`; the query resumes at the same train."
        )


class StreamFailed(HeadgateError):
    """A stream whose source has stopped delivering."""

    def __init__(self, *, stream: str, cause: str) -> None:
        super().__init__(stream, cause)
        self.stream, self.cause = stream, cause

    def __str__(self) -> str:
        return (
            f"stream '{self.stream}' stopped: {self.cause}\n"
            "Tuples that had arrived are processed. Fix: restore the source and start again."
        )


class SparkGone(HeadgateError):
    """A run, or another command, that has ended because the JVM of Spark is gone."""

    def __str__(self) -> str:
        return (
            "the JVM of Spark is gone (killed, or out of memory), so the run has ended; what is"
            " committed is kept, and a new start resumes with nothing lost and nothing twice."
        )


class RowFailed(HeadgateError):
    """An error of a query's own expression, with the tuple that caused it."""

    def __init__(self, *, cause: str, stream: str, number: int | None, values: str) -> None:
        super().__init__(cause, stream, number, values)
        self.cause, self.stream, self.number, self.values = cause, stream, number, values

    def __str__(self) -> str:
        row = "a tuple" if self.number is None else f"tuple {self.number}"
        values = f" ({self.values})" if self.values else ""
        return f"{self.cause}, at {row} of stream '{self.stream}'{values}"


class RecordsLost(StreamFailed):
    """Kafka records that were deleted before the stream had read them."""

    def __init__(
        self, *, stream: str, place: str, expected: int, first: int | None, end: int | None
    ) -> None:
        if first is None or end is None:
            cause = (
                f"{place} was deleted, and may have been created again; the next offset to read was"
                f" {expected}"
            )
        elif expected < first:
            cause = (
                f"{first - expected} records of {place} were deleted before they were read: the"
                f" next offset to read was {expected}, but the first one left is {first}"
            )
        else:
            cause = f"{place} ends at offset {end}, but the next offset to read was {expected}"
        super().__init__(stream=stream, cause=cause)
        self.args = (stream, place, expected, first, end)
        self.place, self.expected, self.first, self.end = place, expected, first, end

    def __str__(self) -> str:
        return (
            f"stream '{self.stream}' stopped: {self.cause}.\n"
            "Tuples that had arrived are processed. Fix: to continue without the lost records, set"
            " the stream's option failOnDataLoss to false and start again; to lose no more, let the"
            " topic keep its records for longer."
        )


class RecoveryRefused(HeadgateError):
    """A state directory whose contents do not match what a command or a run needs."""

    def __init__(self, *, subject: str, expected: str, found: str, fix: str) -> None:
        super().__init__(subject, expected, found, fix)
        self.subject, self.expected, self.found, self.fix = subject, expected, found, fix

    def __str__(self) -> str:
        return f"{self.subject}: expected {self.expected}, found {self.found}.\nFix: {self.fix}"


class RequestRefused(HeadgateError):
    """A request that a running Headgate has refused."""

    def __init__(self, *, message: str, added: Iterable[str] = ()) -> None:
        self.message, self.added = message, list(added)
        super().__init__(message, self.added)

    def __str__(self) -> str:
        before = f"\nAdded before the error: {', '.join(self.added)}." if self.added else ""
        return f"{self.message}{before}"


class TrainUnreadable(HeadgateError):
    """A train whose file in the log cannot be read."""

    def __init__(self, *, stream: str, train: int, file: str, cause: str) -> None:
        super().__init__(stream, train, file, cause)
        self.stream, self.train, self.file, self.cause = stream, train, file, cause

    def __str__(self) -> str:
        return (
            f"train {self.train} of stream '{self.stream}' cannot be read: {self.cause}"
            f" ({self.file}). Fix: restore this file from a copy"
        )


class SinkUnwritable(HeadgateError):
    """A results directory that cannot be written to."""

    def __init__(self, *, folder: str, cause: str) -> None:
        super().__init__(folder, cause)
        self.folder, self.cause = folder, cause
        self.fix = f"make the directory {folder} writable, with free space on its disk,"

    def __str__(self) -> str:
        return f"its results cannot be written to {self.folder}: {self.cause}"


class LogUnwritable(HeadgateError):
    """The log of a derived stream, which a query fills, cannot be written."""

    def __init__(self, *, stream: str, cause: str) -> None:
        super().__init__(stream, cause)
        self.stream, self.cause = stream, cause

    def __str__(self) -> str:
        return f"the log of stream '{self.stream}' cannot be written: {self.cause}"


class LogFull(LogUnwritable):
    """A derived stream whose log is full until its readers have passed some of its trains."""

    def __init__(self, *, stream: str) -> None:
        super().__init__(stream=stream, cause="log_bytes is used up, and its readers are behind")
        self.args = (stream,)


class SinkBehind(HeadgateError):
    """A sink that accepts no results while the space for waiting results is used up."""

    fix = "restore the receiver of the results (waiting results are then delivered automatically)"

    def __init__(self, *, format: str, waiting_bytes: int) -> None:
        super().__init__(format, waiting_bytes)
        self.format, self.waiting_bytes = format, waiting_bytes

    def __str__(self) -> str:
        return (
            f"its {self.format} sink accepts nothing, and {self.waiting_bytes:,} bytes wait for it"
        )


class ResultsHidden(HeadgateError):
    """Results that are committed, but whose files are not visible in their directory yet."""

    def __init__(self, *, folder: str) -> None:
        super().__init__(folder)
        self.folder = folder

    def __str__(self) -> str:
        return (
            f"its last results are committed, but could not be made visible in {self.folder}. Fix:"
            " restore the directory, or free space there; Headgate retries, and the query waits"
            " until that succeeds"
        )


class CallTimedOut(HeadgateError):
    """A call that took longer than `call_timeout_s`."""

    def __init__(self, *, limit_s: float) -> None:
        super().__init__(limit_s)
        self.limit_s = limit_s

    def __str__(self) -> str:
        return (
            f"the call took longer than call_timeout_s, {self.limit_s:g} s; results that it may"
            " still produce are not committed"
        )


class StatisticsMissing(HeadgateError):
    """A simulation of queries whose cost or selectivity is unknown."""

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
    """A broken invariant: a bug in Headgate itself."""

    def __init__(self, *, what: str, state: object = None) -> None:
        super().__init__(what, state)
        self.what, self.state = what, state

    def __str__(self) -> str:
        return f"internal error: {self.what} ({self.state!r}). Please report this."
