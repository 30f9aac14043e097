"""Where results go (files, streams, databases, Kafka, the console), and how a call commits them.

In: the output of a call. Out: the intent in the journal, then visible results; in files, each
exactly once. Never computes a result.
"""
