"""The papers' figures as data: settings, curves, measures and statements.

In: nothing. Out: experiments by id. Never: a number that a result depends on and that no paper
states or the experiment does not name.
"""

from headgate.experiments.papers.index import EXPERIMENTS

__all__ = ["EXPERIMENTS"]
