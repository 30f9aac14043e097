"""Simulation in virtual time, in two forms.

An engine answers the scheduler loop that also drives Spark, and a compiled kernel runs any network.
In: units, arrivals, a seed. Out: events, or the arrays of a world and its report.
Never reads a clock.
"""
