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
"""The format of a stream that a segment of a query fills, see `Path.into`."""

POLLED = ("headgate", "parquet", "json", "csv", "python", "kafka")
"""Formats that the driver can ask by itself."""


@dataclass(frozen=True, kw_only=True)
class Stream:
    """Where tuples come from: any `readStream` format of Spark with its options.

    Args:
        schema: columns as Spark DDL, `"location STRING, temperature INT"`; may stay empty for
            sources that bring their own.
        event_time: the column with the time a tuple speaks of.
        arrival_time: the timestamp column from which response times count; without it a tuple
            arrives when ingest first sees it.
        trigger_s: how often ingest asks the source for new tuples; without it every 30 ms where the
            driver asks by itself, every 200 ms where Structured Streaming does.
        ingest: `auto` lets the driver ask sources that it knows (directories of Parquet, JSON or
            CSV files, the generator, Python rows, topics of Kafka); `driver` refuses others;
            `spark` leaves all to Structured Streaming.
        tuple_bytes: size of a tuple, where the simulation counts bytes.
    """

    name: str
    format: str
    options: Mapping[str, str] = field(default_factory=dict)
    schema: str = ""
    event_time: str | None = None
    arrival_time: str | None = None
    trigger_s: float | None = None
    ingest: Ingest = "auto"
    tuple_bytes: float = 1.0

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise ConfigRefused(
                path="streams", key="name", value=self.name, expected="letters, digits and _"
            )
        if self.trigger_s is not None and self.trigger_s < 0:
            raise ConfigRefused(
                path=f"stream '{self.name}'",
                key="trigger_s",
                value=self.trigger_s,
                expected="0 or more seconds",
            )

    @property
    def is_derived(self) -> bool:
        """Whether a segment fills it, and no source."""
        return self.format == DERIVED

    @property
    def asked_every_s(self) -> float:
        """How often the source is asked."""
        if self.trigger_s is not None:
            return self.trigger_s
        return 0.03 if self.ingest != "spark" and self.format in POLLED else 0.2
