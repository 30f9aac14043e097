"""Analysis of queries by Spark.

In: the text of a query and the schemas of its streams. Out: an analyzed plan with its conditions,
outputs, windows and joins, or a refusal that names the clause. This package never runs a plan.
"""
