"""Figures as plain data: what `report.json` has of an experiment after a sweep."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from headgate.experiments.experiment import Experiment, Panel
from headgate.experiments.run import Run
from headgate.experiments.statement import Statement, Values
from headgate.experiments.summary import Summary
from headgate.metrics.measures import objective_of

NOT_INVESTIGATED = "The reason has not been investigated."

OWN_MEASURES = {
    "results": ("results", "tuples"),
    "tuples_in": ("tuples taken in", "tuples"),
    "seconds": ("duration", "s"),
    "stretch": ("duration over the time of arrivals", ""),
    "cpu_s": ("CPU time of the simulation", "s"),
    "decisions": ("decisions", ""),
    "bytes_seconds": ("queue size, sum over time", "bytes · s"),
    "overhead": ("overhead", "s"),
    "delay": ("response less processing time, mean", "s"),
    "charge": ("policy in charge", "position in the library"),
    "pending_now": ("queue size", "tuples"),
}
"""Name and unit of the measures that are not in `headgate.metrics`."""

OF_INTERVALS = {
    "pending": ("queue size, mean of an interval", "tuples"),
    "mean_response_s": ("response, mean of an interval", "s"),
    "norm_response_s": ("response, ℓ2 norm of an interval", "s"),
    "mean_slowdown": ("slowdown, mean of an interval", ""),
    "norm_slowdown": ("slowdown, ℓ2 norm of an interval", ""),
    "output_per_s": ("output rate", "1/s"),
}
"""Name and unit of measures over time. Some have the names of measures of a whole run."""


def figure_of(
    experiment: Experiment, summaries: Sequence[Summary], *, seeds: int, quick: bool
) -> dict[str, Any]:
    """Return a figure as plain data for JSON: panels with curves, and statements with verdicts.

    Args:
        summaries: of this figure.
    """
    panels = [
        _panel(panel, [summary for summary in summaries if summary.panel == number], quick)
        for number, panel in enumerate(experiment.panels)
    ]
    live = any(panel.engine == "spark" for panel in experiment.panels)
    words = ["headgate reproduce", experiment.id]
    words += [*(["--live"] if live else []), *(["--quick"] if quick else [])]
    return {
        "id": experiment.id,
        "paper": experiment.paper,
        "figure": experiment.figure,
        "command": " ".join([*words, f"--seeds {seeds}"]),
        "settings": _settings(experiment, quick),
        "seeds": list(range(seeds)),
        "panels": panels,
        "statements": _statements(experiment, summaries, seeds, quick),
    }


def _settings(experiment: Experiment, quick: bool) -> dict[str, Any]:
    """Return everything about the setting that a reader needs to repeat it."""
    panels = []
    for panel in experiment.panels:
        place = panel.x.places(quick)[0]
        run: Run = panel.run(panel.curves[0], place, 0, quick=quick)
        fixed = {key: value for key, value in run.options.items() if key != panel.x.sets}
        if panel.traces:
            fixed["traces"] = [Path(trace).name for trace in panel.traces]
        panels.append({
            "title": panel.title,
            "testbed": panel.testbed,
            "options": {key: fixed[key] for key in fixed if key not in panel.curves[0].options},
            "simulation": dict(panel.settings),
            "curves": {
                curve.label: {"policy": curve.policy, **curve.options, **curve.settings}
                for curve in panel.curves
            },
            "measure": panel.measure,
        })  # fmt: skip
    return {"title": experiment.title, "note": experiment.note, "quick": quick, "panels": panels}


def _panel(panel: Panel, summaries: Sequence[Summary], quick: bool) -> dict[str, Any]:
    over_time = OF_INTERVALS.get(panel.measure) if panel.kind == "time" else None
    name, unit = panel.y or over_time or name_of(panel.measure)
    x: dict[str, Any] = {"name": panel.x.name, "unit": panel.x.unit}
    by_curve: dict[int, dict[Any, dict[str, Summary]]] = defaultdict(lambda: defaultdict(dict))
    instants = sorted({summary.at_s for summary in summaries if summary.at_s is not None})
    for summary in summaries:
        place = summary.place if panel.kind != "time" else summary.at_s
        by_curve[summary.curve][place][summary.axis] = summary
    names = panel.x.shown(quick)
    places: Sequence[Any] = instants if panel.kind == "time" else range(len(names))
    x["values"] = instants if panel.kind == "time" else names
    if panel.kind == "scatter":
        x["name"], x["unit"] = name_of(panel.x_measure)
        x["values"] = []
    curves = [
        _curve(panel, position, [by_curve[position].get(place, {}) for place in places])
        for position in range(len(panel.curves))
    ]
    return {
        "engine": panel.engine,
        "kind": panel.kind,
        "x": x,
        "y": {"name": name, "unit": unit},
        "curves": curves,
    }


def _curve(panel: Panel, position: int, entries: Sequence[Mapping[str, Summary]]) -> dict[str, Any]:
    curve = panel.curves[position]
    values = [entry.get("y") for entry in entries]
    data: dict[str, Any] = {
        "label": curve.label,
        "policy": curve.policy,
        "options": {**curve.options, **curve.settings},
    }
    if curve.part:
        data["part"] = curve.part
    if panel.kind == "scatter":
        data["x"] = [None if entry.get("x") is None else entry["x"].mean for entry in entries]
    data["values"] = [None if summary is None else summary.mean for summary in values]
    data["low"] = [None if summary is None else summary.low for summary in values]
    data["high"] = [None if summary is None else summary.high for summary in values]
    return data


def name_of(measure: str) -> tuple[str, str]:
    """Return the name and the unit of a measure."""
    if measure.replace("{x}", "") in OWN_MEASURES:
        return OWN_MEASURES[measure]
    if "{x}" in measure:
        measure = measure.partition(":")[0]
    if measure == "{x}" or not measure:
        return "value", ""
    objective = objective_of(measure)
    return objective.label.partition(" (")[0], objective.measure.unit


def _statements(
    experiment: Experiment, summaries: Sequence[Summary], seeds: int, quick: bool
) -> list[dict[str, Any]]:
    by_seed = [_values(experiment, summaries, quick, seed) for seed in range(seeds)]
    mean = _values(experiment, summaries, quick, None)
    return [_statement(statement, by_seed, mean) for statement in experiment.statements]


def _statement(statement: Statement, by_seed: Sequence[Values], mean: Values) -> dict[str, Any]:
    holds = statement.verdict(by_seed, mean)
    why = "" if holds == "yes" else (statement.why or NOT_INVESTIGATED)
    return {
        "text": statement.text, "holds": holds, "measured": statement.measured(mean), "why": why,
    }  # fmt: skip


def _values(
    experiment: Experiment, summaries: Sequence[Summary], quick: bool, seed: int | None
) -> Values:
    """Return the values of one seed, or the means."""
    x_values: list[Sequence[Any]] = [panel.x.places(quick) for panel in experiment.panels]
    instants: dict[int, list[float]] = {}
    for number, panel in enumerate(experiment.panels):
        if panel.kind == "time":
            instants[number] = sorted(
                {s.at_s for s in summaries if s.panel == number and s.at_s is not None}
            )
            x_values[number] = instants[number]
    lines: dict[tuple[int, str, str], list[float]] = {}
    for number, panel in enumerate(experiment.panels):
        for curve in panel.curves:
            for axis in ("y", "x") if panel.kind == "scatter" else ("y",):
                lines[number, curve.label, axis] = [float("nan")] * len(x_values[number])
    for summary in summaries:
        panel = experiment.panels[summary.panel]
        place = summary.place
        if panel.kind == "time" and summary.at_s is not None:
            place = instants[summary.panel].index(summary.at_s)
        label = panel.curves[summary.curve].label
        value = summary.mean if seed is None else summary.by_seed.get(seed, float("nan"))
        lines[summary.panel, label, summary.axis][place] = value
    return Values(lines, x_values)
