"""Traces: recorded arrivals that replace those of a stream."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from headgate.errors import ConfigRefused
from headgate.model.arrays import Floats
from headgate.model.network.network import Network
from headgate.model.stream import NAME
from headgate.workloads.arrival_trace import recorded
from headgate.workloads.load import measured_rate_per_s


@dataclass(frozen=True, kw_only=True)
class Trace:
    """A column of arrival times in a Parquet file, for one stream.

    Args:
        stream: the stream's name; optional if there is only one stream.
        column: the column of arrival times; optional if only one column can be meant.
        scale: factor of each time. The default for a pipeline is 1; for a testbed it is the factor
            that gives the rate of the replaced arrivals, so that the load stays as requested.
    """

    file: str
    stream: str = ""
    column: str | None = None
    scale: float | None = None

    @classmethod
    def of(cls, text: str, column: str | None = None, scale: float | None = None) -> "Trace":
        """Parse a trace from `FILE` or `STREAM=FILE`.

        >>> Trace.of("packets=data/lan.parquet").stream
        'packets'
        """
        stream, equals, file = text.partition("=")
        if equals and NAME.fullmatch(stream) and not Path(text).exists():
            return cls(file=file, stream=stream, column=column, scale=scale)
        return cls(file=text, column=column, scale=scale)

    def times_s(self, tuples: int | None = None) -> Floats:
        """Return the arrival times in seconds: all, or the first `tuples` of them."""
        scale = 1.0 if self.scale is None else self.scale
        return recorded(self.file, self.column, scale=scale, tuples=tuples)

    def stream_in(self, network: Network) -> str:
        """Return the name of the stream that the trace is for.

        Raises:
            UnknownName: there is no such stream.
            ConfigRefused: the trace names no stream, and there are several.
        """
        names = [stream.name for stream in network.streams]
        if self.stream:
            network.stream_number(self.stream, where="trace")
            return self.stream
        if len(names) > 1:
            some = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
            expected = f"STREAM=FILE, since there are {len(names)} streams: {some}"
            raise ConfigRefused(path="trace", key="stream", value=self.file, expected=expected)
        return names[0]


def replaced(
    testbed: str, network: Network, arrivals: Mapping[str, Floats], traces: Sequence[Trace]
) -> dict[str, Floats]:
    """Return a testbed's arrivals with some replaced by traces, at the rate of those replaced.

    Raises:
        ConfigRefused: the testbed's tuples all wait when the run begins.
    """
    changed = dict(arrivals)
    for trace in traces:
        stream = trace.stream_in(network)
        before_s = arrivals[stream]
        if not before_s[-1] > before_s[0]:
            expected = "left out: its tuples all wait when the run begins"
            raise ConfigRefused(
                path=f"testbed '{testbed}'", key="trace", value=trace.file, expected=expected
            )
        times_s = trace.times_s(len(before_s))
        if trace.scale is None:
            times_s = times_s * (measured_rate_per_s(times_s) / measured_rate_per_s(before_s))
        changed[stream] = times_s
    return changed
