"""The section of a stream: its source, its times, its arrivals in a simulation."""

from typing import Literal

from pydantic import Field, model_validator

from headgate.config.section import Options, Section


class ArrivalsConfig(Section):
    """When tuples arrive in a simulation."""

    rate_per_s: float = Field(gt=0, description="tuples per second outside bursts")
    burst_factor: float = Field(1.0, gt=0, description="factor on the rate during a burst")
    burst_every_s: float = Field(20.0, gt=0, description="seconds from one burst to the next")
    burst_for_s: float = Field(0.0, ge=0, description="seconds that a burst lasts")

    @model_validator(mode="after")
    def _bursts_end(self) -> "ArrivalsConfig":
        if self.burst_for_s >= self.burst_every_s:
            raise ValueError("a mapping in which burst_for_s is below burst_every_s")
        return self


class StreamConfig(Section):
    """A source of tuples, described as for Spark's `readStream`."""

    format: str = Field(description="any readStream format; `headgate` is the built-in generator")
    options: Options = Field(
        default_factory=dict, description="options of the format, passed to it unchanged"
    )
    schema_: str = Field(
        "", alias="schema", description="columns as Spark DDL; empty if the source has its own"
    )
    event_time: str | None = Field(None, description="column with the event time of a tuple")
    lateness_s: float = Field(
        0.0,
        ge=0,
        description="seconds that a tuple's event time may lie behind the greatest one so far"
        " before the tuple is late",
    )
    quiet_s: float | None = Field(
        10.0,
        ge=0,
        description="seconds without a tuple after which the stream's time advances with the"
        " clock, so that its windows close; null: it waits for the next tuple",
    )
    max_delay_s: float | None = Field(
        None,
        ge=0,
        description="the longest time in seconds from the event time of a tuple to the instant at"
        " which its source can return it: a poll without a tuple then moves the stream's time on"
        " at once; if not set, only `quiet_s` does",
    )
    late_path: str | None = Field(
        None,
        min_length=1,
        description="directory for tuples that arrive too late for their windows; if not set, they"
        " are counted and dropped",
    )
    arrival_time: str | None = Field(
        None,
        description="timestamp column from which response times are measured; if not set, a tuple"
        " arrives when Headgate first reads it",
    )
    trigger_s: float | None = Field(
        None,
        ge=0,
        description="seconds between two polls of the source, at least 0.005 after one that brought"
        " nothing; if not set, 0.03 where the driver polls, 0.2 where Spark does",
    )
    ingest: Literal["auto", "driver", "spark"] = Field(
        "auto",
        description="who polls the source. auto: the driver if it can, else Structured Streaming;"
        " driver: the driver, and other sources are refused; spark: Structured Streaming",
    )
    arrivals: ArrivalsConfig | None = Field(None, description="when tuples arrive in a simulation")

    @model_validator(mode="after")
    def _late_by_time(self) -> "StreamConfig":
        if self.late_path is not None and self.event_time is None:
            raise ValueError("a mapping with event_time beside late_path: else no tuple is late")
        if self.max_delay_s is not None and self.event_time is None:
            raise ValueError("a mapping with event_time beside max_delay_s")
        return self
