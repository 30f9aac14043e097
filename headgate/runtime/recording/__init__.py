"""What a run leaves for later: recordings of its decisions, and measured statistics.

In: the events and calls of a run. Out: files in the state directory, and their contents.
Never decides anything.
"""
