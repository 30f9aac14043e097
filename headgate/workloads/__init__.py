"""Workloads: seeded arrivals and tuples, the same for simulation, Spark and experiments.

In: rates, seeds, traces. Out: arrival times and Arrow tables; `testbeds` has the papers' workloads.
Never reads a clock and never runs an engine.
"""
