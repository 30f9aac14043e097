"""Experiments: the papers' figures, and plots of runs side by side.

In: experiments as data, reports and comparisons. Out: results of sweeps, pages with plots.
Never: arithmetic of a simulation, a number that no run has measured.
"""
