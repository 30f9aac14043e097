"""Predictions of a run under another policy: simulations, comparisons, replays.

In: a pipeline file, a testbed or a recording, and policies. Out: reports.
Never starts Spark.
"""
