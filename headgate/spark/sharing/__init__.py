"""Queries that compute the same are computed once.

In: paths with their plans. Out: plans for several queries, and panes that windows have in common.
What is the same, Catalyst's canonical form decides. This package never commits and never schedules.
"""
