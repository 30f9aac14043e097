"""One run: the loop, the queries that are in it, and the protocols of the Spark engine.

In: an engine, a scheduler, listeners. Out: events to listeners, states of queries, a report.
Never checks a query's text and never opens a socket.
"""
