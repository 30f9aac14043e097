"""Data structures of policies, compiled: heaps, bit sets, calendars, envelopes, clusters.

In: keys of units. Out: the unit that comes first.
Never: knowledge of what a policy optimizes.
"""
