"""Summaries of a sweep by Spark SQL: mean, least and most over seeds, and the value of each."""

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from headgate.experiments.experiment import Point

SCHEMA = (
    "figure STRING, panel INT, curve INT, place INT, axis STRING, seed INT, key STRING,"
    " measure STRING, over_key STRING, over_measure STRING"
)

VALUES = """
SELECT p.figure, p.panel, p.curve, p.place, p.axis, r.at_s, p.seed,
       CASE WHEN p.over_key IS NULL THEN r.value ELSE r.value / nullif(o.value, 0) END AS value
FROM points p
JOIN results r ON r.key = p.key AND r.measure = p.measure
LEFT JOIN results o ON o.key = p.over_key AND o.measure = p.over_measure AND o.at_s <=> r.at_s
"""

# The seeds are added up in their order, so that the last digit does not depend on the cluster.
SUMMARY = f"""
WITH measured AS ({VALUES}), grouped AS (
  SELECT figure, panel, curve, place, axis, at_s,
         array_sort(collect_list(struct(seed, value))) AS seeds,
         min(value) AS low, max(value) AS high
  FROM measured WHERE value IS NOT NULL GROUP BY figure, panel, curve, place, axis, at_s
)
SELECT *, aggregate(seeds, 0D, (sum, entry) -> sum + entry.value) / size(seeds) AS mean
FROM grouped ORDER BY figure, panel, curve, place, axis, at_s
"""


@dataclass(frozen=True)
class Summary:
    """A value of a figure: the mean over seeds, the extremes, and the value of each seed.

    `at_s` is the instant of a value over time, else None.
    """

    figure: str
    panel: int
    curve: int
    place: int
    axis: str
    at_s: float | None
    mean: float
    low: float
    high: float
    by_seed: dict[int, float]


def summaries(session: SparkSession, results: DataFrame, points: Sequence[Point]) -> list[Summary]:
    """Return the value of every point that was measured, over its seeds."""
    rows = [
        (point.figure, point.panel, point.curve, point.place, point.axis, point.seed,
         point.run.key, point.measure, None if point.over is None else point.over.key,
         point.over_measure)
        for point in points
    ]  # fmt: skip
    session.createDataFrame(rows, SCHEMA).createOrReplaceTempView("points")
    results.createOrReplaceTempView("results")
    return [
        Summary(
            row.figure, row.panel, row.curve, row.place, row.axis, row.at_s, row["mean"], row.low,
            row.high, {entry.seed: entry.value for entry in row.seeds},
        )
        for row in session.sql(SUMMARY).collect()
    ]  # fmt: skip
