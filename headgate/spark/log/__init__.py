"""What is durable: the trains of every stream, and the journal that says what counts.

In: trains from sources, intents from commits. Out: trains by number, cursors of queries, budgets.
Never looks at the time of a tuple and never knows what a query computes.
"""
