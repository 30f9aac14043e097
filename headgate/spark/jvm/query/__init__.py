"""Queries in the hands of Spark's analyzer.

In: the text of a query and the schemas of its streams. Out: an analyzed plan, taken apart into
conditions, outputs, windows and joins, or a refusal that names the clause. Never runs a plan.
"""
