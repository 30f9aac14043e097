"""Experiments: what runs look like side by side.

In: reports and comparisons. Out: pages with plots that need nothing else. Never: a simulation's own
arithmetic, a number that no run has measured.
"""

from headgate.experiments.plots import comparison_page, over_time_page

__all__ = ["comparison_page", "over_time_page"]
