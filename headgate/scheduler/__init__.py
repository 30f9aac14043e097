"""The scheduler: keeps the unit table true, asks the policy, hands calls to the engine.

In: events. Out: box calls. Never: a clock, a thread, a policy by name, either engine.
"""
