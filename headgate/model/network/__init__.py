"""The network: operators, the graph that they form, and the units that the scheduler picks from.

In: operators and their inputs. Out: units, and the table with one row per unit.
Never measures anything: whoever runs the queries keeps the table up to date.
"""
