"""A run on Spark: the Headgate object, the handles of its queries, and their status.

In: a user's streams, queries and settings. Out: a running engine under one policy.
Never computes a result and never opens a socket.
"""
