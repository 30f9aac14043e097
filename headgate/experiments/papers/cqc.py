"""CQC's figures: classes of queries under the four schedulers (CQC §5.2)."""

from dataclasses import replace

from headgate.experiments.experiment import Axis, Curve, Experiment, Panel
from headgate.experiments.statement import Claim, Ratio, Reaches, Statement

DRAINING = {"train_tuples": 1_000_000}
"""An operator takes its whole queue (CQC §5.1)."""

SOURCES = {"sources": True}
"""Every stream has a source operator. HR and CQC run these when no other operator has tuples."""

EMPTY_S = 1e-6
"""What a visit of an operator without tuples costs: our choice, the time unit of Table 1."""

LOAD = 0.95
FULL = {"tuples": 10_000, "load": LOAD}
QUICK = {"tuples": 1_000}
SCHEDULERS = (
    Curve(label="RR", policy="rr-box", options=DRAINING, settings={"visit_s": EMPTY_S}),
    Curve(label="HR", policy="sources-last(inner=hr)", options=DRAINING),
    Curve(label="CQC", policy="cqc", settings={"poll_s": EMPTY_S}),
)
ALONE = Curve(
    label="H only",
    policy="sources-last(inner=hr)",
    options={**DRAINING, "only": "H"},
    measure="mean_response",
)
NOTE = (
    "The 21 queries and their costs are not published: nine aggregates, six joins and six"
    " selections with relative costs 2, 4 and 1; a load of 0.95, as the paper runs “highly loaded"
    " without overload”; windows of ten tuples. The baselines run as in AQSIOS: they drain queues,"
    " HR reads sources last, and RR pays 1 µs for an empty operator, as CQC does for a poll. Beside"
    " it, the load goes from 0.8 to 1.3."
)
WHY = (
    "The gain depends on the load and on where HR puts the queries of each class, and the paper"
    " publishes neither its queries nor their costs. Below saturation all queues are short and"
    " there is little to gain."
)


def _statement(text: str, *claims: Claim, why: str = WHY) -> Statement:
    return Statement(text=text, claims=claims, why=why)


def _classes(workload: str) -> Panel:
    return Panel(
        title=f"average response time by class, workload {workload}, load {LOAD:g}",
        kind="bars",
        testbed="cqc",
        options={"workload": workload, **FULL, **SOURCES},
        quick=QUICK,
        x=Axis(name="class", values=("H", "C", "N")),
        curves=SCHEDULERS,
        measure="mean_response:class={x}",
    )


def _sweep(workload: str, query_class: str) -> Panel:
    return Panel(
        title=f"class {query_class} by load, workload {workload}",
        testbed="cqc",
        options={"workload": workload, "tuples": 10_000, **SOURCES},
        quick=QUICK,
        x=Axis(
            name="load", values=(0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.2, 1.3),
            quick=(0.8, 0.95, 1.05, 1.3), sets="load",
        ),
        curves=SCHEDULERS,
        measure=f"mean_response:class={query_class}",
    )  # fmt: skip


def _workload(figure: int, workload: str, factor: float, *statements: Statement) -> Experiment:
    return Experiment(
        id=f"cqc-{figure:02}",
        paper="cqc",
        figure=str(figure),
        title=f"Workload {workload}: response time of the classes",
        note=NOTE,
        panels=(_classes(workload), _sweep(workload, "H"), _sweep(workload, "C")),
        statements=(
            _statement(
                f"CQC improves class H by a factor of {factor:g} over HR.",
                Ratio(of="HR", to="CQC", least=factor / 2, most=2 * factor, at="H"),
            ),
            _statement(
                f"In the sweep of loads the factor of {factor:g} is reached.",
                Reaches(of="HR", to="CQC", least=factor, panel=1),
            ),
            _statement(
                "CQC impairs class N.", Ratio(of="CQC", to="HR", least=1.0, at="N"),
                why="HR may already treat class N badly, and then nothing is left to impair.",
            ),
            *statements,
        ),
    )  # fmt: skip


BETTER_C = (
    _statement("CQC also improves class C.", Ratio(of="CQC", to="HR", most=1.0, at="C")),
    _statement(
        "In the sweep of loads class C is improved by 2.5.",
        Reaches(of="HR", to="CQC", least=2.5, panel=2),
    ),
)
CQC = (
    Experiment(
        id="cqc-03",
        paper="cqc",
        figure="3",
        title="Response time of class H",
        note=NOTE,
        panels=(
            Panel(
                title=f"average response time of class H, load {LOAD:g}",
                kind="bars",
                testbed="cqc",
                options={**FULL, **SOURCES},
                quick=QUICK,
                x=Axis(name="workload", values=("A", "B", "C"), sets="workload"),
                curves=(*SCHEDULERS, ALONE),
                measure="mean_response:class=H",
            ),
        ),
        statements=(
            _statement(
                "CQC improves class H over HR by a factor of at least 9.4.",
                Ratio(of="HR", to="CQC", least=9.4),
            ),
            _statement(
                "Class H alone is faster still.", Ratio(of="H only", to="CQC", most=1.0)
            ),
        ),
    ),
    _workload(
        4, "A", 9.4,
        _statement(
            "Class C has a higher response time than under HR.",
            Ratio(of="CQC", to="HR", least=1.0, at="C"),
        ),
    ),
    _workload(5, "B", 19.8, *BETTER_C),
    _workload(6, "C", 19.3, *BETTER_C),
    Experiment(
        id="cqc-6",
        paper="cqc",
        figure="§6",
        title="The conclusion: gains of classes H and C",
        note=f"A statement of §6 without a figure of its own. {NOTE}",
        panels=tuple(
            Panel(
                title=f"response under HR over that under CQC, class {name}, load {LOAD:g}",
                kind="bars",
                testbed="cqc",
                options={**FULL, **SOURCES},
                quick=QUICK,
                x=Axis(name="workload", values=("A", "B", "C"), sets="workload"),
                curves=(
                    replace(SCHEDULERS[1], label="HR / CQC", over=SCHEDULERS[2]),
                ),
                measure=f"mean_response:class={name}",
                y=("improvement", ""),
            )
            for name in ("H", "C")
        ) + tuple(
            replace(
                _sweep(workload, name),
                title=f"response under HR over that under CQC, class {name}, workload {workload}",
                curves=(replace(SCHEDULERS[1], label="HR / CQC", over=SCHEDULERS[2]),),
                y=("improvement", ""),
            )
            for workload in ("B", "C") for name in ("H", "C")
        ),
        statements=(
            _statement(
                "Class H improves by a factor of at least 19 in workloads B and C.",
                Ratio(of="HR / CQC", least=19.0, at="B"), Ratio(of="HR / CQC", least=19.0, at="C"),
            ),
            _statement(
                "Class C improves by a factor of at least 2.5 in workloads B and C.",
                Ratio(of="HR / CQC", least=2.5, at="B", panel=1),
                Ratio(of="HR / CQC", least=2.5, at="C", panel=1),
            ),
            _statement(
                "At some load, class H improves by at least 19 in workloads B and C.",
                *(Reaches(of="HR / CQC", least=19.0, panel=panel) for panel in (2, 4)),
            ),
            _statement(
                "At some load, class C improves by at least 2.5 in workloads B and C.",
                *(Reaches(of="HR / CQC", least=2.5, panel=panel) for panel in (3, 5)),
            ),
            _statement(
                "In workload A class H improves by 9.4 only.",
                Ratio(of="HR / CQC", least=4.7, most=18.8, at="A"),
            ),
        ),
    ),
)  # fmt: skip
