"""Testbeds: the papers' workloads and Nexmark's, by name and with their options.

In: a name, options, a seed. Out: networks with their arrivals, and tuples as Arrow tables.
Never reads a clock and never runs an engine.
"""
