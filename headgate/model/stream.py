"""A stream: a named, typed, unbounded sequence of tuples."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any, Literal

from headgate.errors import ConfigRefused
from headgate.extensions import source_entry
from headgate.model.argument_types import refuse_types
from headgate.model.display.short_repr import ShortRepr

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,99}")
"""Names become those of files and folders, which may have 255 bytes."""

NAME_RULE = "letters, digits and _, at most 100 of them"
ARRIVED_AT = "_arrived_at_s"
"""The column of the stream log that holds a tuple's arrival, in seconds since 1970."""

Ingest = Literal["auto", "driver", "spark"]
Rows = Callable[[int], Iterable[Mapping[str, Any]]]
"""A function from n to a stream's tuples from the n-th on, as mappings from column to value."""

DERIVED = "derived"
"""The format of a stream without a source: a query fills it (`Path.into`), or it is a timeline."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Stream(ShortRepr):
    """Where tuples come from: any `readStream` format of Spark with its options.

    Args:
        schema: columns as Spark DDL, `"location STRING, temperature INT"`; may be empty for sources
            that have their own.
        event_time: the column with the event time of a tuple.
        lateness_s: how far the event time of a tuple may lie behind the greatest one so far. A
            tuple further behind is late, and no window contains it.
        quiet_s: time without a tuple after which the stream's time advances with the clock, so that
            its windows close; None: it waits for the next tuple.
        max_delay_s: the longest time from the event time of a tuple to the instant at which the
            source can return it. A poll that finds nothing then moves the stream's time on at once
            to that of the poll minus this delay; None: it does not.
        late_path: the directory for tuples that are late or have no event time; None: they are
            counted and dropped.
        arrival_time: the timestamp column from which response times are measured; None: a tuple
            arrives when ingest first reads it.
        trigger_s: time between two polls of the source; None: 30 ms if the driver polls, 200 ms if
            Structured Streaming does.
        ingest: `auto` has the driver poll the sources that it can (directories of Parquet, JSON or
            CSV files, the generator, Python rows, Kafka topics, registered sources) and leaves
            others to Structured Streaming; `driver` refuses others; `spark` leaves all to
            Structured Streaming.
        tuple_bytes: size of a tuple, where the simulation counts bytes.
        of: for a timeline, the streams whose trains it contains.

    Options may contain passwords, so `repr` hides them.

    >>> Stream(name="orders", format="json", options={"path": "in"}, event_time="ts")
    Stream(name='orders', format='json', event_time='ts')
    """

    name: str
    format: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    schema: str = ""
    event_time: str | None = None
    lateness_s: float = 0.0
    quiet_s: float | None = 10.0
    max_delay_s: float | None = None
    late_path: str | None = None
    arrival_time: str | None = None
    trigger_s: float | None = None
    ingest: Ingest = "auto"
    tuple_bytes: float = 1.0
    of: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        refuse_types(self)
        if not NAME.fullmatch(self.name):
            raise ConfigRefused(path="streams", key="name", value=self.name, expected=NAME_RULE)
        for key in ("trigger_s", "lateness_s", "quiet_s", "max_delay_s"):
            value = getattr(self, key)
            if value is not None and not 0 <= value < inf:
                raise ConfigRefused(
                    path=f"stream '{self.name}'", key=key, value=value,
                    expected="0 or more seconds",
                )  # fmt: skip
        if self.max_delay_s is not None and self.event_time is None:
            raise ConfigRefused(
                path=f"stream '{self.name}'", key="max_delay_s", value=self.max_delay_s,
                expected="set together with event_time",
            )  # fmt: skip
        if self.late_path is not None and (not self.late_path or self.event_time is None):
            expected = "a directory" if self.event_time else "set together with event_time"
            raise ConfigRefused(
                path=f"stream '{self.name}'", key="late_path", value=self.late_path,
                expected=expected,
            )  # fmt: skip

    @property
    def is_derived(self) -> bool:
        """Whether a query or other streams fill it, instead of a source."""
        return self.format == DERIVED

    @property
    def unwatched(self) -> str:
        """What does not hold if Structured Streaming reads it, in a sentence; "" if all does."""
        if "path" not in map(str.lower, self.options):
            return ""
        return (
            f"stream '{self.name}': Structured Streaming reads its files, so most_record_bytes and"
            " most_file_bytes do not limit them, and a file that grows or is replaced after it was"
            " read is not noticed"
        )

    @property
    def is_stamped_at_arrival(self) -> bool:
        """Whether the event time of a tuple is the time at which it arrives."""
        times = self.event_time, self.arrival_time
        return None not in times and len({str(column).lower() for column in times}) == 1

    @property
    def bound_delay_s(self) -> float | None:
        """How far behind a poll in vain the event time of the next tuple may lie; None if unknown.

        The lower bound of an empty input (BZ §4.1). The generator stamps tuples when it is polled.
        Other sources return what was written and stamped before, so a user has to say how long
        before.
        """
        stamps = self.format == "headgate" and self.is_stamped_at_arrival
        return 0.0 if self.max_delay_s is None and stamps else self.max_delay_s

    @property
    def asked_every_s(self) -> float:
        """Seconds between two polls of the source."""
        if self.trigger_s is not None:
            return self.trigger_s
        return 0.03 if self.ingest != "spark" and source_entry(self.format) else 0.2
