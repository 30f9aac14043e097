"""The Spark engine: ingest, stream log, executor, sinks, journal.

In: box calls. Out: committed files and events. Never asks a policy or parses a query's text itself.
"""
