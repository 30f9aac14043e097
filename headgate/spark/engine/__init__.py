"""The Spark engine: what the scheduling loop talks to, from the start of a run to its end.

In: calls, and queries and streams that are added and dropped. Out: events, and everything that the
other folders of `spark` do. Never decides which query runs next.
"""
