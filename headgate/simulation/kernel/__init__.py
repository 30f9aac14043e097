"""The compiled mechanics of a simulation: arrivals, box calls, joins, queues, results.

In: a world and an instant. Out: the same world, changed.
Never decides which unit runs.
"""
