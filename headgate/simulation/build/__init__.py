"""From units, arrivals and options to the arrays of a world.

In: a network and its settings. Out: a world before its first instant, or a refusal.
Never runs anything.
"""
