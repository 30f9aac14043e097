"""A span of OpenTelemetry for every call."""

from typing import TYPE_CHECKING, Any

from headgate.errors import ConfigRefused
from headgate.model.events import Event, StepFinished, StepStarted
from headgate.model.network.network import Network

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

NANOS = 1_000_000_000


class Spans:
    """A listener that makes each call a span, with the provider that the program has set.

    Args:
        network: returns the present network, for the names of units.

    Raises:
        ConfigRefused: the extra `otel` is not installed.
    """

    def __init__(self, network: Any) -> None:
        self._tracer, self._network = _tracer(), network
        self._begun_at_s: dict[int, float] = {}

    def __call__(self, event: Event) -> None:
        match event:
            case StepStarted():
                self._begun_at_s[event.call.number] = event.at_s
            case StepFinished():
                self._finish(event)

    def _finish(self, event: StepFinished) -> None:
        call, network = event.call, self._network()
        begun_at_s = self._begun_at_s.pop(call.number, event.at_s)
        stream = network.streams[call.stream].name
        span = self._tracer.start_span(
            f"call {stream}",
            start_time=int(begun_at_s * NANOS),
            attributes={
                "headgate.call": call.number, "headgate.stream": stream,
                "headgate.queries": _names(network, call.units), "headgate.lane": event.lane,
                "headgate.tuples": call.tuples, "headgate.results": sum(event.tuples_out),
                "headgate.failed": _names(network, event.failed),
                "headgate.commit_s": event.commit_s,
            },
        )  # fmt: skip
        span.end(end_time=int(event.at_s * NANOS))


def _names(network: Network, units: tuple[int, ...]) -> list[str]:
    """Return the queries of units that are still in the network."""
    places = [network.places[unit] for unit in units if unit in network.places]
    return [network.paths[place].query.name for place in places]


def _tracer() -> "Tracer":
    try:
        from opentelemetry.trace import get_tracer  # noqa: PLC0415  # an optional extra
    except ImportError as error:
        raise ConfigRefused(
            path="headgate", key="traces", value=True,
            expected="false, or OpenTelemetry installed: pip install 'headgate[otel]'",
        ) from error  # fmt: skip
    return get_tracer("headgate")
