"""Methods that several policies share: charts, traversals, learning, policies inside others.

In: units and what was measured of them. Out: orders, partitions, choices.
Never registered under a name of its own.
"""
