"""Whole simulations: the compiled loop, the engine for the Python loop, replays, reports.

In: a world and a policy. Out: a report with the figures of every query and class.
Never reads a clock.
"""
