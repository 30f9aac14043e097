"""The event time of streams: the order of trains, their watermarks, and which tuples are late.

In: trains of the log. Out: timelines, which windows have closed, which tuples are still needed.
Never computes a result.
"""
