"""A run on Spark: the Headgate object, its queries' handles, and what they report.

In: streams, queries and settings of a user. Out: a running engine under one policy.
Never computes a result and never opens a socket.
"""
