"""The metrics of a run, computed from its events.

In: events and the unit table. Out: summaries. Never reads a clock and never publishes a figure.
"""
