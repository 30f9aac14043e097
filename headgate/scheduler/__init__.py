"""The scheduler: keeps the unit table current, asks the policy for a plan, returns box calls.

In: events. Out: box calls. Never: a clock, a thread, a policy by name, either engine.
"""
