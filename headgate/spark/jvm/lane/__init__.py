"""The driver lane: Spark's physical plans, run in the calling thread without a job.

In: an analyzed plan, and Arrow tables for its relations. Out: an Arrow table, or the error of the
row that the plan failed at. Never decides whether a call runs here; that is the scheduler's.
"""
