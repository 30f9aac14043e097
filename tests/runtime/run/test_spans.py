"""A span of OpenTelemetry for every call."""

from typing import Any

import numpy as np
import pytest
from kit.networks import line, network, select

from headgate.model.events import StepFinished, StepStarted
from headgate.model.plan import BoxCall
from headgate.runtime.run.spans import Spans

export = pytest.importorskip("opentelemetry.sdk.trace.export", reason="no opentelemetry-sdk")


def test_a_call_is_a_span_with_its_queries_lane_and_times(monkeypatch: pytest.MonkeyPatch) -> None:
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import (  # noqa: PLC0415
        InMemorySpanExporter,
    )

    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(export.SimpleSpanProcessor(exporter))
    monkeypatch.setattr("opentelemetry.trace._TRACER_PROVIDER", provider)
    net = network(line("fire", select(0.001)), line("log", select(0.001)))
    spans, call = Spans(lambda: net), BoxCall(5, (0, 1), 0, 3, 4, 20)
    spans(StepStarted(10.0, call))
    responses_s: tuple[Any, ...] = (np.ones(2), np.zeros(0))
    spans(StepFinished(10.5, call, 0.4, (2, 0), responses_s, failed=(1,), lane="driver"))
    (span,) = exporter.get_finished_spans()
    assert (span.name, span.start_time, span.end_time) == ("call s", 10 * 10**9, 105 * 10**8)
    attributes = dict(span.attributes)
    assert attributes["headgate.queries"] == ("fire", "log")
    assert attributes["headgate.failed"] == ("log",)
    assert (attributes["headgate.results"], attributes["headgate.lane"]) == (2, "driver")
