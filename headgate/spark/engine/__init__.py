"""The Spark engine: runs the calls that the scheduler starts, and reports what happened.

In: calls, and queries and streams that are added and dropped. Out: events, and everything that the
other folders of `spark` do. Never decides which query runs next.
"""
