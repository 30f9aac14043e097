"""The builder of a world's arrays from units, arrivals and options.

In: a network and its settings. Out: a world before its first instant, or a refusal.
Never runs anything.
"""
