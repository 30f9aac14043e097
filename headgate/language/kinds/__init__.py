"""Queries that need several tuples at a time, one file per kind.

In: a query that Spark has analyzed. Out: its kind, with inputs and plans, or a refusal. The file of
the same name in `spark/windows` computes it. Never computes a result.
"""
