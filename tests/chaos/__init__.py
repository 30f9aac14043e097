"""Faults of every kind, one after the other, against real runs: `make chaos`.

`plan.py` draws the faults from a seed and forms groups, `faults.py` has a function for each kind,
`chain.py` is the state directory through which a group goes, `runs.py` starts runs and JVMs,
`pipeline.py` has the queries and compares their results with DuckDB, `ledger.py` keeps what was
done and prints the table. Nothing here is collected by pytest; `journeys/test_chaos.py` runs two
faults.
"""
