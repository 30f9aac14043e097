"""An experiment: a paper's figure as data. Its panels say what is run, measured and drawn."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from headgate.experiments.run import Engine, Run
from headgate.experiments.statement import Statement

Kind = Literal["line", "bars", "stacked", "scatter", "time"]
Value = float | int | str
NOTHING: Mapping[str, Any] = {}


@dataclass(frozen=True, kw_only=True)
class Axis:
    """The x axis of a panel: a name, and the values that are run.

    Args:
        sets: the option of the testbed that has this value, or, with a colon before it, the option
            of the simulation. If it is empty, the value only stands for `{x}` in the texts of
            policies and measures.
        quick: the values of a quick run; by default all.
        labels: what is shown instead of the values, in the order of `values`.
    """

    name: str
    values: tuple[Value, ...]
    unit: str = ""
    sets: str = ""
    quick: tuple[Value, ...] = ()
    labels: tuple[Value, ...] = ()

    def places(self, quick: bool) -> tuple[Value, ...]:
        """Return the values that are run."""
        return self.quick if quick and self.quick else self.values

    def shown(self, quick: bool) -> list[Value]:
        """Return the values as a chart shows them."""
        names: Mapping[Value, Value] = dict(zip(self.values, self.labels, strict=False))
        return [names.get(value, value) for value in self.places(quick)]


@dataclass(frozen=True, kw_only=True)
class Curve:
    """One curve, or one set of bars: a policy, and what is special about its runs.

    Args:
        policy: the policy as on the command line; `{x}` stands for the value of the x axis.
        options: of the testbed, in addition to those of the panel.
        settings: of the simulation, in addition to those of the panel.
        measure: what is measured, if not the panel's.
        over: the curve that every value is divided by, at the same x and seed.
        part: in stacked bars, the part that the curve is.
        fixed: whether the x axis does not apply, so that one run has the values at all x.
    """

    label: str
    policy: str
    options: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    measure: str = ""
    over: "Curve | None" = None
    part: str = ""
    fixed: bool = False


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One chart of a figure.

    Args:
        quick: options of the testbed in a quick run, in addition to `options`.
        settings: options of the simulation.
        measure: the measure on the y axis: a name of `headgate.metrics`, perhaps followed by
            `:class=NAME`, or one of those in `headgate.experiments.run`.
        y: name and unit of the y axis; by default those of the measure.
        x_measure: in a scatter, the measure on the x axis.
        traces: files of recorded arrivals that replace those of the testbed, in its streams'
            order. The panel is left out if the folder of traces does not have them.
        every_s: in a panel over time, how far apart the samples are, in seconds.
        until_s: when the last sample is taken.
        repeats: how often a run is repeated to measure `cpu_s`.
        engine: what runs it. On Spark, options are those of a pipeline instead of a testbed.
    """

    title: str
    kind: Kind = "line"
    testbed: str
    x: Axis
    curves: tuple[Curve, ...]
    measure: str
    options: Mapping[str, Any] = field(default_factory=dict)
    quick: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    y: tuple[str, str] | None = None
    x_measure: str = ""
    traces: tuple[str, ...] = ()
    every_s: float = 0.0
    until_s: float = 0.0
    repeats: int = 1
    engine: Engine = "simulation"

    def run(self, curve: Curve, x: Value, seed: int, *, quick: bool) -> Run:
        """Return the run that has the value of a curve at x."""
        options = {**self.options, **(self.quick if quick else NOTHING), **curve.options}
        if self.traces:
            options["traces"] = list(self.traces)
        settings = {**self.settings, **curve.settings}
        if curve.fixed:
            pass
        elif self.x.sets.startswith(":"):
            settings[self.x.sets[1:]] = x
        elif self.x.sets:
            options[self.x.sets] = x
        return Run(
            testbed=self.testbed,
            options=options,
            settings=settings,
            policy=curve.policy.replace("{x}", str(x)),
            seed=seed,
            every_s=self.every_s,
            until_s=self.until_s,
            repeats=self.repeats,
            engine=self.engine,
        )


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A figure of a paper, with the paper's statements about it.

    Args:
        id: paper and figure, as in `sharaf-07`.
        figure: the figure's number, or the section if there is no figure.
        note: what a reader must know about the setting, such as our choices and rulings.
        seeds: how many seeds a full run has.
    """

    id: str
    paper: str
    figure: str
    title: str
    panels: tuple[Panel, ...]
    statements: tuple[Statement, ...]
    note: str = ""
    seeds: int = 5


@dataclass(frozen=True, kw_only=True)
class Point:
    """One value of a figure for one seed: where it is drawn, and which run has it.

    `part` is the measure of the x axis in a scatter, else of the y axis.
    """

    figure: str
    panel: int
    curve: int
    place: int
    axis: Literal["x", "y"]
    seed: int
    run: Run
    measure: str
    over: Run | None = None
    over_measure: str = ""


def with_traces(experiment: Experiment, folder: Path | None) -> Experiment:
    """Return an experiment without the panels whose traces are not in a folder of traces.

    Statements about these panels are left out, too. Panels with traces stand after all others, so
    that the numbers of those stay.
    """
    panels = []
    for panel in experiment.panels:
        files = [(folder / trace).resolve() for trace in panel.traces] if folder is not None else []
        if len(files) == len(panel.traces) and all(file.is_file() for file in files):
            panels.append(replace(panel, traces=tuple(map(str, files))))
    statements = tuple(
        statement
        for statement in experiment.statements
        if all(claim.panel < len(panels) for claim in statement.claims)
    )
    return replace(experiment, panels=tuple(panels), statements=statements)


def points_of(experiment: Experiment, *, seeds: int, quick: bool) -> Iterator[Point]:
    """Yield all values of an experiment that a sweep has to measure."""
    for number, panel in enumerate(experiment.panels):
        for place, x in enumerate(panel.x.places(quick)):
            for position, curve in enumerate(panel.curves):
                for seed in range(seeds):
                    yield from _points(
                        experiment.id, number, panel, position, curve, place, x, seed, quick
                    )


def _points(
    figure: str, number: int, panel: Panel, position: int, curve: Curve, place: int, x: Value,
    seed: int, quick: bool,
) -> Iterator[Point]:  # fmt: skip
    run = panel.run(curve, x, seed, quick=quick)
    over = None if curve.over is None else panel.run(curve.over, x, seed, quick=quick)
    wanted: list[tuple[Literal["x", "y"], str]] = [("y", curve.measure or panel.measure)]
    if panel.x_measure:
        wanted.append(("x", panel.x_measure))
    for axis, measure in wanted:
        over_measure = (curve.over.measure if curve.over else "") or measure
        yield Point(
            figure=figure,
            panel=number,
            curve=position,
            place=place,
            axis=axis,
            seed=seed,
            run=run,
            measure=measure.replace("{x}", str(x)),
            over=over,
            over_measure=over_measure.replace("{x}", str(x)),
        )
