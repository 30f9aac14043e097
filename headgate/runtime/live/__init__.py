"""The Headgate object, the handles of its queries, their status, and checks before a run.

In: a user's streams, queries and settings. Out: a run under one policy, and answers about it.
Never computes a result and never opens a socket.
"""
