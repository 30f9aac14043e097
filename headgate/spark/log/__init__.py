"""Durable state: the trains of every stream, and the journal of what is committed.

In: trains from sources, intents from commits. Out: trains by number, cursors of queries, budgets.
Never looks at the time of a tuple and never knows what a query computes.
"""
