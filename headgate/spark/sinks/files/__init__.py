"""Results as files: written under hidden names, renamed after the commit, merged later.

In: the results of a call. Out: files in the query's folder, each result exactly once.
Never decides whether a call is committed.
"""
