"""From SQL text to a path of operators.

In: texts, and Spark's reading of them. Out: paths, or a refusal with clause, reason and fix.
Never imports Spark, a policy or the scheduler.
"""
