"""Queries that need more than one tuple at a time: one file per kind.

In: a query's plans and its timeline. Out: the results that trains of the timeline bring. What is
late or closed is a matter of the log. This package never commits and never schedules.
"""
