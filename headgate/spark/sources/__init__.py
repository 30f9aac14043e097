"""Where tuples come from: files, Kafka, Python rows, a generator, Structured Streaming.

In: a stream's format and options. Out: trains in its log, dead letters for what cannot be read.
Never schedules a query.
"""
