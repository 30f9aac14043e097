"""Explanations of queries and drawings of the network, for people.

In: the state of a run, or a pipeline file. Out: plain data, text and SVG.
Never changes a run.
"""
