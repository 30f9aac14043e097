"""What a run leaves for later: recordings of its decisions, and measured statistics.

In: the events and calls of a run. Out: files in the state directory, and what they say.
Never decides anything.
"""
