"""Simulations as a whole: the compiled loop, the engine for Python's loop, replays, reports.

In: a world and a policy. Out: a report of what every query and class got.
Never reads a clock.
"""
