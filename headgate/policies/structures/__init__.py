"""Data structures of policies, compiled: heaps, bit sets, calendars, envelopes, clusters.

In: keys of units. Out: the unit that comes first.
Never knows what a policy optimizes.
"""
