"""Where results go: files, streams, databases, Kafka, the console; and how a call commits.

In: the output of a call. Out: the intent in the journal, then visible results, each exactly once in
files. Never computes a result.
"""
