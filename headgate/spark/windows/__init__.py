"""Queries that need more than one tuple at a time, one file per kind.

In: a query's plans and its timeline. Out: the results of some trains of the timeline. The log
decides what is late or closed. This package never commits and never schedules.
"""
