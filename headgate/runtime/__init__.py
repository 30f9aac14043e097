"""The runtime: the only package that puts policy, scheduler and engine together.

In: streams, queries, pipelines. Out: running Headgates, simulations, reports.
Never prints to a screen.
"""

from headgate.runtime.describe.drawing import Drawing, drawn, write_page
from headgate.runtime.describe.explanation import Explanation, explained
from headgate.runtime.live.call_file import past_why
from headgate.runtime.live.changes import Change
from headgate.runtime.live.check import Checked, check
from headgate.runtime.live.headgate import Headgate
from headgate.runtime.live.history import past
from headgate.runtime.live.load import load
from headgate.runtime.live.state_folder import holder_of, is_alive
from headgate.runtime.modules import load_module
from headgate.runtime.policy_text import Spelled, spelled, value_of
from headgate.runtime.results import results
from headgate.runtime.what_if.compare import Comparison, compare
from headgate.runtime.what_if.replay import Calibration, Replay, replay
from headgate.runtime.what_if.simulate import simulate
from headgate.runtime.what_if.traces import Trace
from headgate.runtime.what_if.workload import Workload, workload
from headgate.workloads.testbeds.registry import TESTBEDS, Family, Variant

__all__ = [
    "TESTBEDS",
    "Calibration",
    "Change",
    "Checked",
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
    "check",
    "compare",
    "drawn",
    "explained",
    "holder_of",
    "is_alive",
    "load",
    "load_module",
    "past",
    "past_why",
    "replay",
    "results",
    "simulate",
    "spelled",
    "value_of",
    "workload",
    "write_page",
]
