"""Reproduce figures of the papers: choose experiments, sweep, summarize, write the report."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from headgate.errors import ConfigRefused, UnknownName
from headgate.experiments.experiment import Experiment, points_of, with_traces
from headgate.experiments.figures import figure_of
from headgate.experiments.papers import EXPERIMENTS
from headgate.experiments.report import TITLES, write_report
from headgate.experiments.run import Run
from headgate.experiments.summary import summaries
from headgate.experiments.sweep import sweep
from headgate.spark.jvm.session import local_session, stop_session

QUICK_SEEDS = 2


@dataclass(frozen=True)
class Reproduction:
    """What was reproduced: the figures as in `report.json`, and the first page of the report."""

    figures: list[dict[str, Any]]
    page: Path
    runs: int


def chosen(
    ids: Sequence[str] = (), *, paper: str | None = None, all_figures: bool = False
) -> list[Experiment]:
    """Return the experiments of these ids, of a paper, or all.

    Raises:
        UnknownName: there is no such figure or paper.
        ConfigRefused: nothing was chosen.
    """
    for name in ids:
        if name not in EXPERIMENTS:
            raise UnknownName(kind="figure", name=name, known=EXPERIMENTS)
    if paper is not None and paper not in TITLES:
        raise UnknownName(kind="paper", name=paper, known=TITLES)
    experiments = [
        experiment
        for experiment in EXPERIMENTS.values()
        if all_figures or experiment.id in ids or experiment.paper == paper
    ]
    if not experiments:
        expected = "figures such as sharaf-07, or --paper NAME, or --all; --list shows them"
        raise ConfigRefused(path="reproduce", key="figures", value=None, expected=expected)
    return experiments


def reproduce(
    experiments: Sequence[Experiment],
    *,
    quick: bool = False,
    seeds: int | None = None,
    master: str = "local[*]",
    report: str | Path = "report",
    cache: str | Path = "state/reproduce",
    traces: str | Path | None = None,
    session: SparkSession | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Reproduction:
    """Run the experiments as a Spark job and write their report.

    Args:
        quick: fewer values and tuples, and two seeds.
        seeds: number of seeds; by default that of each experiment.
        report: the folder of the report.
        cache: the folder of the results, which later calls use again.
        traces: a folder of recorded arrivals; figures that use some get panels of their own.
        session: a session of the caller, instead of one at `master`; it is not stopped.
        progress: called with the number of runs that are done, and of all.
    """
    folder = None if traces is None else Path(traces)
    experiments = [with_traces(experiment, folder) for experiment in experiments]
    place = Path(cache)
    place.mkdir(parents=True, exist_ok=True)
    numbers = {
        experiment.id: seeds or (QUICK_SEEDS if quick else experiment.seeds)
        for experiment in experiments
    }
    points = [
        point
        for experiment in experiments
        for point in points_of(experiment, seeds=numbers[experiment.id], quick=quick)
    ]
    runs: dict[str, Run] = {}
    for point in points:
        for run in (point.run, point.over):
            if run is not None:
                runs.setdefault(run.key, run)
    spark = session or local_session(place, master, {})
    try:
        results = sweep(spark, list(runs.values()), str(place / "results"), progress)
        values = summaries(spark, results, points)
    finally:
        if session is None:
            stop_session(spark)
    figures = [
        figure_of(
            experiment,
            [value for value in values if value.figure == experiment.id],
            seeds=numbers[experiment.id],
            quick=quick,
        )
        for experiment in experiments
    ]
    return Reproduction(figures, write_report(figures, report), len(runs))
