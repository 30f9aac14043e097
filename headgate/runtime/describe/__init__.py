"""How queries run, for people: explanations and drawings of the network.

In: the state of a run, or a pipeline file. Out: plain data, text and SVG.
Never changes a run.
"""
