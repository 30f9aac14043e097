"""Headgate runs hundreds of continuous queries of different importance on one Spark application."""

from headgate import testing
from headgate.errors import HeadgateError
from headgate.extensions import Polled, Receiver, Source, sink, source
from headgate.metrics.report import Report
from headgate.model.query import Query, Sink, View
from headgate.model.stream import Stream
from headgate.policies import Policy, policy_named, priority
from headgate.runtime import (
    Headgate,
    Replay,
    Workload,
    compare,
    load,
    replay,
    results,
    simulate,
)

__version__ = "0.1.0"

__all__ = [
    "Headgate",
    "HeadgateError",
    "Policy",
    "Polled",
    "Query",
    "Receiver",
    "Replay",
    "Report",
    "Sink",
    "Source",
    "Stream",
    "View",
    "Workload",
    "__version__",
    "compare",
    "load",
    "policy_named",
    "priority",
    "replay",
    "results",
    "simulate",
    "sink",
    "source",
    "testing",
]
