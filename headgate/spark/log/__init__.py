"""The log: the trains of every stream as files, dead letters, late tuples and budgets.

In: trains from sources. Out: trains by number, and the rows in them.
Never looks at the time of a tuple and never knows what a query computes.
"""
