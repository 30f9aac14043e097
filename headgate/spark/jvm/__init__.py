"""The wall around Spark's internals.

In: SQL texts and Arrow tables. Out: analyzed plans, refusals, Arrow tables. Only this package
touches `_jvm`, `_jdf`, `_jsparkSession` and Catalyst's classes. It never schedules, commits or
reads the log.
"""
