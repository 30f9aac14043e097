"""Reproduce figures of the papers: choose experiments, sweep, summarize, write the report."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from headgate.errors import ConfigRefused, UnknownName
from headgate.experiments.experiment import Experiment, Point, points_of, with_traces
from headgate.experiments.figures import figure_of
from headgate.experiments.live import LIVE_FIGURES, refuse_off_spark, with_live
from headgate.experiments.live_run import rates_text, run_live
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
    ids: Sequence[str] = (),
    *,
    paper: str | None = None,
    all_figures: bool = False,
    live: bool = False,
) -> list[Experiment]:
    """Return the experiments of these ids, of a paper, or all.

    Args:
        live: add panels and statements on Spark to the figures that have some.

    Raises:
        UnknownName: there is no such figure or paper.
        ConfigRefused: nothing was chosen; or `live` is set and the engine cannot run a figure that
            is named, or any figure of the paper.
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
    if not live:
        return experiments
    on_spark = [experiment for experiment in experiments if experiment.id in LIVE_FIGURES]
    for experiment in experiments:
        if experiment.id in ids or not on_spark:
            refuse_off_spark(experiment)
    return [with_live(experiment) for experiment in experiments]


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
    """Run the experiments as a Spark job, live panels after it, and write their report.

    Args:
        quick: fewer values and tuples, and two seeds.
        seeds: number of seeds; by default that of each experiment.
        report: the folder of the report.
        cache: the folder of the results, which later calls use again.
        traces: a folder of recorded arrivals; figures that use some get panels of their own.
        session: a session of the caller, instead of one at `master`; it is not stopped.
        progress: called with the number of runs that are done, and of all.
    """
    recorded = None if traces is None else Path(traces)
    experiments = [with_traces(experiment, recorded) for experiment in experiments]
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
        simulated = [run for run in runs.values() if run.engine == "simulation"]
        live = [run for run in runs.values() if run.engine == "spark"]
        folder = str(place / "results")
        results = sweep(spark, simulated, folder, lambda done, _: progress(done, len(runs)))
        if live:
            results, capacities = run_live(
                spark, live, folder, lambda done: progress(len(simulated) + done, len(runs))
            )
            experiments = [
                _with_rates(experiment, points, capacities) for experiment in experiments
            ]
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


def _with_rates(
    experiment: Experiment, points: Sequence[Point], capacities: Mapping[str, float]
) -> Experiment:
    """Return a figure whose note has the rates of its live panels, if there are some."""
    runs = [point.run for point in points if point.figure == experiment.id]
    live = [run for run in runs if run.engine == "spark"]
    if not live:
        return experiment
    return replace(experiment, note=f"{experiment.note} {rates_text(live, capacities)}")
