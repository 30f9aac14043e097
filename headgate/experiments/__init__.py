"""Experiments: the papers' figures, and plots of runs side by side.

In: experiments as data, reports and comparisons. Out: results of sweeps, pages with plots.
Never simulates anything itself, and shows no number that no run has measured.
"""
