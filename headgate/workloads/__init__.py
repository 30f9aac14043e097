"""Workloads: seeded arrivals and tuples, the same for simulation, Spark and experiments.

In: rates, seeds, traces. Out: arrival times, Arrow tables, the papers' testbeds.
Never: a clock, either engine.
"""
