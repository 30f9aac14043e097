"""What happens in a simulation, compiled: arrivals, box calls, joins, queues, results.

In: a world and an instant. Out: the same world, changed.
Never decides which unit runs.
"""
