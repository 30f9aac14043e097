"""The Spark engine: runs the calls that the scheduler starts, and reports what happened.

In: calls, queries and streams that come and go. Out: events, and everything that the other
folders of `spark` do. Never decides which query runs next.
"""
