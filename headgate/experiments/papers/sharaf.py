"""Sharaf's figures, in their order: 7 to 34 of chapter 3, 35 to 43 of chapter 4."""

from headgate.experiments.papers.sharaf_freshness import FRESHNESS
from headgate.experiments.papers.sharaf_implementation import IMPLEMENTATION
from headgate.experiments.papers.sharaf_load import BY_LOAD
from headgate.experiments.papers.sharaf_over_time import OVER_TIME_FIGURES
from headgate.experiments.papers.sharaf_queries import QUERIES

SHARAF = tuple(
    sorted(
        (*BY_LOAD, *QUERIES, *OVER_TIME_FIGURES, *IMPLEMENTATION, *FRESHNESS),
        key=lambda experiment: experiment.id,
    )
)
