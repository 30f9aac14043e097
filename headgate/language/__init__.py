"""From SQL text to a path of operators.

In: texts, and the classes of the plan that Spark made of them. Out: paths, or a refusal with
clause, reason and fix. Never: Spark, a policy, a scheduler.
"""
