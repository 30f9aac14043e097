"""The nouns: streams, queries, network, unit table, plan, events.

In: plain values. Out: frozen data that refuses invalid values. Never: a clock, a file, a thread.
"""
