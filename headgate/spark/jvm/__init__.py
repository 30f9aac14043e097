"""The only package that uses Spark's internals.

In: SQL texts and Arrow tables. Out: analyzed plans, refusals, Arrow tables. Only this package
uses `_jvm`, `_jdf`, `_jsparkSession` and Catalyst's classes. It never schedules or commits.
"""
