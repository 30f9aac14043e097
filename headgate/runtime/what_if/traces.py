"""Recorded arrivals in place of a stream's own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from headgate.errors import ConfigRefused
from headgate.model.arrays import Floats
from headgate.model.network import Network
from headgate.model.stream import NAME
from headgate.workloads.load import measured_rate_per_s
from headgate.workloads.recorded import recorded


@dataclass(frozen=True, kw_only=True)
class Trace:
    """A column of a Parquet file, for one stream.

    Args:
        stream: which one; left out where there is only one.
        column: the arrival times; left out where one stands out.
        scale: what each time is multiplied by; left out, 1 for a pipeline, and for a testbed what
            gives the rate of the stream that is replaced, so that the load stays as asked.
    """

    file: str
    stream: str = ""
    column: str | None = None
    scale: float | None = None

    @classmethod
    def of(cls, text: str, column: str | None = None, scale: float | None = None) -> "Trace":
        """Gives the trace that `FILE` or `STREAM=FILE` means.

        >>> Trace.of("packets=data/lan.parquet").stream
        'packets'
        """
        stream, equals, file = text.partition("=")
        if equals and NAME.fullmatch(stream) and not Path(text).exists():
            return cls(file=file, stream=stream, column=column, scale=scale)
        return cls(file=text, column=column, scale=scale)

    def times_s(self, tuples: int | None = None) -> Floats:
        """Gives the first arrivals, in seconds."""
        scale = 1.0 if self.scale is None else self.scale
        return recorded(self.file, self.column, scale=scale, tuples=tuples)

    def stream_in(self, network: Network) -> str:
        """Gives the stream it is for.

        Raises:
            UnknownName: there is no such stream.
            ConfigRefused: it names none, and there are several.
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
    """Gives a testbed's arrivals with traces in place of some, at the rate that these had.

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
