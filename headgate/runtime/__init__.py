"""The runtime: puts policy, scheduler and engine together; the only room that knows all three.

In: streams, queries, pipelines. Out: running Headgates, simulations, reports. Never: a screen.
"""

from headgate.runtime.headgate import Headgate, load
from headgate.runtime.simulated import simulate, simulate_pipeline

__all__ = ["Headgate", "load", "simulate", "simulate_pipeline"]
