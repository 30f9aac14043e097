"""The papers' figures as data: settings, curves, measures and statements.

In: nothing. Out: experiments by id.
Every number that a result depends on comes from the paper or is named in the experiment's note.
"""

from headgate.experiments.papers.index import EXPERIMENTS

__all__ = ["EXPERIMENTS"]
