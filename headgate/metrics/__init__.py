"""What a run was worth: folds over events.

In: events and the unit table. Out: summaries. Never: a gauge, a clock, a scheduler.
"""
