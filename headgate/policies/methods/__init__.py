"""Methods that several policies share: charts, traversals, learning, policies inside others.

In: units and their measured figures. Out: orders, partitions, choices.
Never registered as a policy.
"""
