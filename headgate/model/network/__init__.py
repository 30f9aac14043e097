"""The network: operators, the graph that they form, and the units that the scheduler picks from.

In: operators and their inputs. Out: units, and the table with one row per unit.
Never: a statistic of its own; whoever runs the queries keeps the table true.
"""
