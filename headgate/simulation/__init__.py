"""Virtual time: an engine for the loop that Spark has too, and a compiled kernel for all networks.

In: units, arrivals, a seed. Out: events, or the arrays of a world and its report. Never: a clock.
"""
