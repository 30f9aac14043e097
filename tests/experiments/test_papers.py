"""The papers' figures as data: every name in them exists, and every statement can be decided."""

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import pytest

from headgate.experiments.experiment import Experiment, Panel, points_of, with_traces
from headgate.experiments.live import with_live
from headgate.experiments.papers import EXPERIMENTS
from headgate.experiments.report import TITLES
from headgate.experiments.statement import Claim
from headgate.runtime.policy_text import Spelled
from headgate.simulation.world.setting import Setting
from headgate.workloads.testbeds.registry import named_testbed

FIGURES = {
    "aurora": {3, *range(5, 10), 11, 13, 14},
    "amos": {2, *range(5, 10)},
    "cqc": set(range(3, 7)),
    "sharaf": {*range(7, 35), *range(36, 44)},
    "bz": {12, 13},
}
OF_WORKLOAD = {"train_tuples", "overhead_s", "shared_priority", "learns", "level", "traces"}
PARAMETERS = [
    pytest.param(with_live(experiment), id=name) for name, experiment in EXPERIMENTS.items()
]


def test_all_figures_of_the_papers_are_there() -> None:
    numbers = {paper: set[int]() for paper in TITLES}
    for experiment in EXPERIMENTS.values():
        if experiment.figure.isdigit() and experiment.id != "sharaf-35":
            numbers[experiment.paper].add(int(experiment.figure))
    assert numbers == FIGURES
    assert sum(map(len, FIGURES.values())) == 57


@pytest.mark.parametrize("experiment", PARAMETERS)
def test_policies_options_and_settings_exist(experiment: Experiment) -> None:
    settings = {field.name for field in fields(Setting)}
    for point in points_of(experiment, seeds=1, quick=True):
        Spelled(point.run.policy)
        if point.run.engine == "spark":
            continue
        options = {key: value for key, value in point.run.options.items() if key not in OF_WORKLOAD}
        named_testbed(point.run.testbed, options)
        assert set(point.run.settings) <= settings


def labels_of(claim: Claim) -> Iterator[tuple[str, Any]]:
    """Yield the labels of a claim."""
    for key in ("of", "to", "minus", "label"):
        if getattr(claim, key, ""):
            yield key, getattr(claim, key)
    for key in ("labels", "among"):
        for label in getattr(claim, key, ()):
            yield key, label


def panel_of(experiment: Experiment, claim: Claim) -> Panel:
    return experiment.panels[claim.panel]


@pytest.mark.parametrize("experiment", PARAMETERS)
@pytest.mark.parametrize("quick", [False, True])
def test_statements_are_about_curves_and_x_values_that_are_run(
    experiment: Experiment, quick: bool
) -> None:
    for statement in experiment.statements:
        for claim in statement.claims:
            panel = panel_of(experiment, claim)
            labels = {curve.label for curve in panel.curves}
            assert {label for _, label in labels_of(claim)} <= labels, statement.text
            for key in ("at", "other_at", "since", "until"):
                x = getattr(claim, key, None)
                assert x is None or x in panel.x.places(quick), (statement.text, x)


def test_panels_whose_traces_are_not_there_are_left_out_and_stand_last() -> None:
    for experiment in EXPERIMENTS.values():
        remaining = with_traces(experiment, None)
        assert remaining.panels == experiment.panels[: len(remaining.panels)]
        assert not any(panel.traces for panel in remaining.panels)
        assert remaining.statements
