"""The runtime: puts policy, scheduler and engine together; the only room that knows all three.

In: streams, queries, pipelines. Out: running Headgates, simulations, reports. Never: a screen.
"""

from headgate.runtime.comparison import Comparison, compare
from headgate.runtime.drawing import Drawing, drawn, write_page
from headgate.runtime.explanation import Explanation, explained
from headgate.runtime.headgate import Headgate
from headgate.runtime.history import past
from headgate.runtime.load import load
from headgate.runtime.modules import load_module
from headgate.runtime.replayed import Calibration, Replay, replay
from headgate.runtime.simulated import simulate
from headgate.runtime.spelling import Spelled, spelled, value_of
from headgate.runtime.traces import Trace
from headgate.runtime.workload import Workload, workload
from headgate.workloads.named import TESTBEDS, Family, Variant

__all__ = [
    "TESTBEDS",
    "Calibration",
    "Comparison",
    "Drawing",
    "Explanation",
    "Family",
    "Headgate",
    "Replay",
    "Spelled",
    "Trace",
    "Variant",
    "Workload",
    "compare",
    "drawn",
    "explained",
    "load",
    "load_module",
    "past",
    "replay",
    "simulate",
    "spelled",
    "value_of",
    "workload",
    "write_page",
]
