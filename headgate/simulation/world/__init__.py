"""The state of a simulation, as arrays that compiled code reads and writes.

In: nothing but numbers. Out: the world, the options that it was built with, pointers to it.
Never changes by itself.
"""
