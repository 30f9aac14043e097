"""Sharing: what several queries have in common is computed once.

In: paths with their plans. Out: plans for several queries, and panes that windows have in common.
Catalyst's canonical form decides what is the same. This package never commits and never schedules.
"""
