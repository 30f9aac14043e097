"""A stream: a named, typed, unbounded sequence of tuples."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from headgate.errors import ConfigRefused

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
ARRIVED_AT = "_arrived_at_s"
"""The column of the stream log that holds a tuple's arrival, in seconds since 1970."""

Ingest = Literal["auto", "driver", "spark"]
Rows = Callable[[int], Iterable[Mapping[str, Any]]]
"""Gives a stream's tuples from the n-th on, as mappings from column to value."""

DERIVED = "derived"
"""The format of a stream that no source fills: a query does (`Path.into`), or it is a timeline."""

POLLED = ("headgate", "parquet", "json", "csv", "python", "kafka")
"""Formats that the driver can ask by itself."""


@dataclass(frozen=True, kw_only=True)
class Stream:
    """Where tuples come from: any `readStream` format of Spark with its options.

    Args:
        schema: columns as Spark DDL, `"location STRING, temperature INT"`; may stay empty for
            sources that bring their own.
        event_time: the column with the time a tuple speaks of.
        lateness_s: how far below the greatest time so far that of a tuple may be; below it the
            tuple is late, and no window has it.
        quiet_s: a stream that is quiet for so long lets its time pass as the clock does, so that
            its windows close; None: it waits for the next tuple.
        late_path: the directory for tuples that are late, or have no time; None: they are counted
            and dropped.
        arrival_time: the timestamp column from which response times count; without it a tuple
            arrives when ingest first sees it.
        trigger_s: how often ingest asks the source for new tuples; without it every 30 ms where the
            driver asks by itself, every 200 ms where Structured Streaming does.
        ingest: `auto` lets the driver ask sources that it knows (directories of Parquet, JSON or
            CSV files, the generator, Python rows, topics of Kafka); `driver` refuses others;
            `spark` leaves all to Structured Streaming.
        tuple_bytes: size of a tuple, where the simulation counts bytes.
        of: of a timeline, the streams whose trains it has.
    """

    name: str
    format: str
    options: Mapping[str, str] = field(default_factory=dict)
    schema: str = ""
    event_time: str | None = None
    lateness_s: float = 0.0
    quiet_s: float | None = 10.0
    late_path: str | None = None
    arrival_time: str | None = None
    trigger_s: float | None = None
    ingest: Ingest = "auto"
    tuple_bytes: float = 1.0
    of: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise ConfigRefused(
                path="streams", key="name", value=self.name, expected="letters, digits and _"
            )
        for key in ("trigger_s", "lateness_s", "quiet_s"):
            value = getattr(self, key)
            if value is not None and value < 0:
                raise ConfigRefused(
                    path=f"stream '{self.name}'", key=key, value=value,
                    expected="0 or more seconds",
                )  # fmt: skip

        if self.late_path is not None and (not self.late_path or self.event_time is None):
            expected = "a directory" if self.event_time else "event_time, too: else none is late"
            raise ConfigRefused(
                path=f"stream '{self.name}'", key="late_path", value=self.late_path,
                expected=expected,
            )  # fmt: skip

    @property
    def is_derived(self) -> bool:
        """Whether a query or other streams fill it, and no source."""
        return self.format == DERIVED

    @property
    def asked_every_s(self) -> float:
        """How often the source is asked."""
        if self.trigger_s is not None:
            return self.trigger_s
        return 0.03 if self.ingest != "spark" and self.format in POLLED else 0.2
