"""The state of a simulation, as arrays that compiled code reads and writes.

In: numbers only. Out: the world, the options that it was built with, pointers to it.
Never changes by itself.
"""
