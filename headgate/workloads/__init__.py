"""What comes in: seeded arrivals and tuples, the same for simulation, Spark and experiments.

In: rates and seeds. Out: arrival times, Arrow tables. Never: a clock, either engine.
"""
