"""The metrics of a run, computed from its events.

In: events and the unit table. Out: summaries. Never: a gauge, a clock, a scheduler.
"""
