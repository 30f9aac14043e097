"""The time of streams: in which order trains count, their watermarks, and which tuples are late.

In: trains of the log. Out: timelines, which windows have closed, from where on tuples are needed.
Never computes a result.
"""
