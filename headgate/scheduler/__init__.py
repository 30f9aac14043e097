"""The scheduler: keeps the unit table current, asks the policy for a plan, returns box calls.

In: events. Out: box calls. Never reads a clock, starts a thread, or knows an engine or a policy by
name.
"""
