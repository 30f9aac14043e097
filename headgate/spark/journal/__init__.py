"""The journal: what is committed, in one SQLite file.

In: trains that were written, and intents of commits. Out: cursors of queries, their ids, and what
recovery has to finish. Never reads a train and never knows what a query computes.
"""
