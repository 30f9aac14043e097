"""Experiments: plots of runs side by side.

In: reports and comparisons. Out: self-contained pages with plots. Never: arithmetic of a
simulation, a number that no run has measured.
"""

from headgate.experiments.plots import comparison_page, over_time_page

__all__ = ["comparison_page", "over_time_page"]
