"""The nouns: streams, queries, network, unit table, plan, events.

In: plain values. Out: frozen data that refuses what cannot be. Never: a clock, a file, a thread.
"""
