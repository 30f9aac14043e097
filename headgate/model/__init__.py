"""The nouns: streams, queries, network, unit table, plan, events.

In: plain values. Out: frozen data that refuses invalid values.
Never reads a clock, opens a file or starts a thread.
"""
