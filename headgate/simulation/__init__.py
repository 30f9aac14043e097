"""The virtual-time engine: no Spark, millions of tuples in seconds.

In: a network, arrivals, a seed. Out: the same events as the Spark engine. Never: a real clock.
"""
