"""The streams and queries of a Headgate, and how they come, change and go.

In: additions and changes of users. Out: a network with ids, and requests to the engine.
Never schedules a call and never computes a result.
"""
