"""The driver lane: Spark's physical plans, run in the calling thread without a job.

In: an analyzed plan, and Arrow tables for its relations. Out: an Arrow table, or the error with the
row at which the plan failed. The scheduler decides whether a call runs here; this package never
does.
"""
