"""Figures on Spark: panels beside the simulated ones, and why the engine cannot run some figures.

A live panel has the axis, the curves and the measure of a simulated one, and the paper's statements
are judged by it once more. `live_run` runs it.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from headgate.errors import ConfigRefused
from headgate.experiments.experiment import Curve, Experiment, Panel
from headgate.experiments.figures import name_of
from headgate.experiments.live_run import CHANGES, LIVE, WARM_UP_S
from headgate.experiments.papers.amos import SPECIFICATIONS
from headgate.experiments.pipelines import POLL_S
from headgate.experiments.statement import Statement

FULL_S, QUICK_S = 20.0, 5.0
"""How long tuples arrive in a run; in AMoS's figures, how long a specification is in force."""

NOTE = (
    f"On Spark the queries are SQL over the generator's streams, polled every {POLL_S:g} s. One"
    " worker runs one query a call, which takes all tuples that wait. Costs are in the simulation's"
    " proportions. A load of 1 is what the worker processes in long trains, measured first. Tuples"
    f" arrive for {FULL_S:g} s, in a quick run {QUICK_S:g} s. Seeds differ in the values of tuples"
    " only. A response counts from the instant at which its tuple is due."
)
NOTES = {
    "cqc": "",
    "amos": "Operators are views on Spark. The specifications of figures 5 to 9 are in force one"
    " after the other in the same run, and a figure shows what was measured meanwhile under every"
    f" algorithm. The rate changes {CHANGES} times in that time, up and down by 75 %.",
    "aurora": "On Spark trees have depth 3 and fan-out 2. A box is a view with a queue"
    " of its own; a superbox is one query, so that a call runs all boxes. TAAT takes the tuples of"
    " one poll, the least that a call can take.",
}
"""By testbed, what a reader must know about the pipeline."""

WHY = (
    "On Spark every call costs some milliseconds whatever it takes, and under every policy a tuple"
    f" waits {POLL_S / 2:g} s on average until its source is polled."
)
LIVE_FIGURES = frozenset(
    {"aurora-05", "aurora-09", "cqc-03", "cqc-04", "cqc-05", "cqc-06", "cqc-6", *SPECIFICATIONS}
)
"""The figures that run on Spark."""

BOXES = "it is about the order of boxes inside a superbox, which is one plan of Spark"
GRAPHS = "its applications with QoS graphs have no pipeline for Spark yet"
REASONS = {
    "sharaf": "its hundreds of queries have stated costs and selectivities, and no SQL",
    "bz": "it schedules the operators of one plan, which the engine runs as one unit",
    "amos-02": "it shows a course over time, and a live run measures means",
    "amos-4": "it is about the CPU time of choosing in plans of up to 90 operators",
    "aurora-03": "its other side is native Structured Streaming; bench/native.py compares the two",
    "aurora-06": BOXES,
    "aurora-07": BOXES,
    "aurora-5.3": BOXES,
    "aurora-08": "its trains are shares of a queue, and the engine has no such setting",
    "aurora-11": GRAPHS,
    "aurora-13": GRAPHS,
    "aurora-14": GRAPHS,
}
"""By figure, or by paper, why the engine cannot run it yet."""


def refuse_off_spark(experiment: Experiment) -> None:
    """Raise ConfigRefused, with the reason, if the engine cannot run a figure yet."""
    if experiment.id not in LIVE_FIGURES:
        reason = REASONS.get(experiment.id) or REASONS[experiment.paper]
        expected = f"left out for this figure: {reason}"
        raise ConfigRefused(path="reproduce", key="--live", value=experiment.id, expected=expected)


def with_live(experiment: Experiment) -> Experiment:
    """Return a figure with live panels and statements after the simulated ones, if it has any.

    There are none for panels over time.
    """
    if experiment.id not in LIVE_FIGURES:
        return experiment
    numbers = [n for n, panel in enumerate(experiment.panels) if panel.kind != "time"]
    places = {number: len(experiment.panels) + place for place, number in enumerate(numbers)}
    panels = [_on_spark(experiment.panels[number], experiment.id) for number in numbers]
    statements = [
        _judged_at(places, statement)
        for statement in experiment.statements
        if all(claim.panel in places for claim in statement.claims)
    ]
    notes = experiment.note, NOTE, NOTES[panels[0].testbed]
    return replace(
        experiment,
        panels=(*experiment.panels, *panels),
        statements=(*experiment.statements, *statements),
        note=" ".join(note for note in notes if note),
    )


def _judged_at(places: Mapping[int, int], statement: Statement) -> Statement:
    """Return a statement about the live panels in the place of the simulated ones."""
    claims = []
    for claim in statement.claims:
        changes = {"panel": places[claim.panel]}
        if (other := getattr(claim, "other_panel", None)) is not None:
            changes["other_panel"] = places[other]
        claims.append(replace(cast(Any, claim), **changes))
    return replace(statement, text=f"On Spark: {statement.text}", claims=tuple(claims), why=WHY)


def _on_spark(panel: Panel, figure: str) -> Panel:
    testbed = LIVE[panel.testbed]
    phase = f":phase={figure}" if panel.testbed == "amos" else ""

    def curve_on_spark(curve: Curve) -> Curve:
        policy = curve.policy
        if policy.startswith("amos("):  # the run changes the specification
            policy = policy.partition(",specification=")[0] + ")"
        return replace(
            curve, policy=policy, options=testbed.common(curve.options), settings={},
            measure=curve.measure and curve.measure + phase,
            over=curve.over and curve_on_spark(curve.over),
        )  # fmt: skip

    options = {**testbed.options, **testbed.common(panel.options)}
    return replace(
        panel,
        title=f"{panel.title}, on Spark",
        engine="spark",
        options={**options, "warm_up_s": WARM_UP_S, "seconds": FULL_S},
        quick={"seconds": QUICK_S},
        settings={},
        curves=tuple(map(curve_on_spark, panel.curves)),
        measure=panel.measure + phase,
        y=panel.y or name_of(panel.measure),
    )
