"""The execution of calls: workers evaluate them, on one of two lanes, and commit the results.

In: calls that the scheduler starts. Out: rows in sinks and the journal, and events that report the
outcome. Never decides which query runs next, nor which queries there are.
"""
