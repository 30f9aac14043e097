"""The Spark engine: ingest, stream log, executor, sinks, journal.

In: box calls. Out: committed files and events. Never: a policy, the simulation, the language.
"""
