"""Sharaf's figures of other queries and of trade-offs: 11, 14 to 16, 21 to 24, 26 (§3.8)."""

from dataclasses import replace
from typing import Any

from headgate.experiments.experiment import Axis, Curve, Experiment, Panel
from headgate.experiments.papers.sharaf_setting import (
    NOTE,
    POLICIES,
    QUICK,
    QUICK_JOINS,
    curves,
    statement,
)
from headgate.experiments.statement import (
    Best,
    Ordered,
    Ratio,
    Trend,
    lower,
)


def _aggregates(figure: int, title: str, values: tuple[float, ...]) -> Experiment:
    panel = Panel(
        title="mean tardiness",
        testbed="sharaf",
        options={"variant": "aggregates", "queries": 500, "tuples": 20_000},
        quick={"queries": 100},
        x=Axis(name="utilization", values=values, sets="utilisation"),
        curves=(
            Curve(label="EDF", policy="edf"),
            Curve(label="HR", policy="hr"),
            Curve(label="hybrid", policy="edf-hr"),
        ),
        measure="tardiness",
    )
    return Experiment(
        id=f"sharaf-{figure:02}",
        paper="sharaf",
        figure=str(figure),
        title=title,
        note="Windows of 1 to 10 s, slides from 1 s to the window; the slide is the deadline.",
        panels=(
            panel,
            replace(panel, title="largest tardiness", measure="max_tardiness"),
        ),
        statements=(
            statement(
                "The hybrid of EDF and HR is never above either.",
                Best(label="hybrid"),
                why="A late query goes to the list of HR, and waits for all late ones of a higher "
                "rate. Where few results are late, a few such waits decide the mean: the largest "
                "tardiness is hundreds of times as long (second panel).",
            ),
        ),
    )


LOWEST, HIGHEST = "mean_slowdown:class=cost0_s10", "mean_slowdown:class=cost0_s100"
LOW, HIGH = (0.1, 0.3, 0.5), (0.7, 0.8, 0.9, 0.95)
COSTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("five cost classes", {}),
    ("one cost", {"cost_classes": 1}),
)
QUERIES = (
    Experiment(
        id="sharaf-11",
        paper="sharaf",
        figure="11",
        title="Maximum against average slowdown",
        note=f"{NOTE} Utilization 0.95.",
        panels=(
            Panel(
                title="maximum against average slowdown",
                kind="scatter",
                testbed="sharaf",
                options={"queries": 500, "tuples": 20_000},
                quick=QUICK,
                x=Axis(name="utilization", values=(0.95,), sets="utilisation"),
                curves=curves("HNR", "LSF", "BSD"),
                measure="max_slowdown",
                x_measure="mean_slowdown",
            ),
        ),
        statements=(
            statement(
                "BSD lies between HNR and LSF in both.",
                Ordered(labels=("LSF", "BSD", "HNR")),
                Ordered(labels=("HNR", "BSD", "LSF"), axis="x"),
            ),
            statement(
                "Its maximum is 44 % below that of HNR, its average 80 % below that of LSF.",
                lower("BSD", "HNR", 0.44), lower("BSD", "LSF", 0.80, axis="x"),
            ),
        ),
    ),
    Experiment(
        id="sharaf-14",
        paper="sharaf",
        figure="14",
        title="Slowdown per class, queries of low cost",
        note=f"{NOTE} Utilization 0.95. Classes of the lowest cost, by selectivity.",
        panels=(
            Panel(
                title="average slowdown of the cheapest queries",
                testbed="sharaf",
                options={
                    "queries": 500, "tuples": 20_000, "utilisation": 0.95, "by_class": True
                },
                quick={"tuples": 3_000},
                x=Axis(
                    name="selectivity",
                    values=(10, 20, 30, 40, 50, 60, 70, 80, 90, 100),
                    labels=(0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
                ),
                curves=curves("HR", "HNR", "BSD"),
                measure="mean_slowdown:class=cost0_s{x}",
            ),
            Panel(
                title="bias: slowdown at selectivity 0.1 over that at 1.0",
                kind="bars",
                testbed="sharaf",
                options={
                    "queries": 500, "tuples": 20_000, "utilisation": 0.95, "by_class": True
                },
                quick={"tuples": 3_000},
                x=Axis(name="selectivities", values=("0.1 over 1.0",)),
                curves=tuple(
                    replace(
                        curve, measure=LOWEST, over=replace(curve, measure=HIGHEST)
                    )
                    for curve in curves("HR", "HNR", "BSD")
                ),
                measure=LOWEST,
                y=("slowdown over slowdown", ""),
            ),
        ),
        statements=(
            statement(
                "HR is unfair to queries of low selectivity.",
                Trend(of="HR", rises=False, by=2.0),
                Ratio(of="HR", to="HNR", least=1.0, at=10),
            ),
            statement(
                "HNR is less biased than HR, and BSD less than HNR.",
                Ordered(labels=("BSD", "HNR", "HR"), tolerance=0.0, panel=1),
            ),
        ),
    ),
    Experiment(
        id="sharaf-15",
        paper="sharaf",
        figure="15",
        title="ℓ2 norm of slowdowns by maximum selectivity",
        note=f"{NOTE} Utilization 0.95. The thesis gives all operators one cost, which makes HR "
        "and HNR the same policy: the first panel has the default costs, the second one cost.",
        panels=tuple(
            Panel(
                title=f"ℓ2 norm of slowdowns, {name}",
                testbed="sharaf",
                options={"queries": 500, "tuples": 20_000, "utilisation": 0.95, **costs},
                quick=QUICK,
                x=Axis(
                    name="maximum selectivity",
                    values=(0.1, 0.2, 0.3, 0.5, 0.7, 1.0),
                    quick=(0.1, 0.5, 1.0),
                    sets="highest_selectivity",
                ),
                curves=curves("HR", "HNR", "BSD"),
                measure="norm_slowdown",
            )
            for name, costs in COSTS
        ),
        statements=(
            statement("BSD is always best.", Best(label="BSD")),
            statement(
                "With one cost, the three are almost the same at a maximum of 0.1.",
                Ratio(of="HR", to="BSD", least=0.9, most=1.1, at=0.1, panel=1),
                Ratio(of="HNR", to="BSD", least=0.9, most=1.1, at=0.1, panel=1),
                why="All queries are equal then. HR and HNR still serve one before the other, by "
                "number, and BSD serves the oldest tuple first.",
            ),
            statement(
                "BSD is 44 % below HR and 19 % below HNR at 0.5, 61 % and 27 % at 1.0.",
                lower("BSD", "HR", 0.44, x=0.5), lower("BSD", "HNR", 0.19, x=0.5),
                lower("BSD", "HR", 0.61, x=1.0), lower("BSD", "HNR", 0.27, x=1.0),
            ),
        ),
    ),
    Experiment(
        id="sharaf-16",
        paper="sharaf",
        figure="16",
        title="An oracle that knows which tuples pass",
        note=f"{NOTE} Utilization 0.95. Each oracle over its own policy, in the measure of that "
        "policy. The thesis gives all operators one cost, which makes HR and HNR the same policy: "
        "the first panel has the default costs, the second one cost.",
        panels=tuple(
            Panel(
                title=f"oracle over regular policy, {name}",
                testbed="sharaf",
                options={"queries": 500, "tuples": 20_000, "utilisation": 0.95, **costs},
                quick={"queries": 50, "tuples": 2_000},
                x=Axis(
                    name="maximum selectivity",
                    values=(0.1, 0.2, 0.3, 0.5, 0.7, 1.0),
                    quick=(0.1, 0.5, 1.0),
                    sets="highest_selectivity",
                ),
                curves=(
                    Curve(
                        label="HR-O / HR, average response", policy="hr-o",
                        measure="mean_response",
                        over=Curve(label="HR", policy="hr", measure="mean_response"),
                    ),
                    Curve(
                        label="HNR-O / HNR, average slowdown", policy="hnr-o",
                        measure="mean_slowdown",
                        over=Curve(label="HNR", policy="hnr", measure="mean_slowdown"),
                    ),
                ),
                measure="mean_response",
                y=("oracle over regular policy", ""),
            )
            for name, costs in COSTS
        ),
        statements=(
            statement(
                "The oracle is up to 80 % better at 0.1.",
                Ratio(of="HR-O / HR, average response", least=0.1, most=0.3, at=0.1),
                why="With five cost classes, costs decide a part of the order in which an oracle "
                "has nothing to improve; the thesis has one cost for all operators (second panel).",
            ),
            statement(
                "With one cost for all operators, the oracle is up to 80 % better at 0.1.",
                Ratio(of="HR-O / HR, average response", least=0.1, most=0.3, at=0.1, panel=1),
            ),
            statement(
                "The gain shrinks to 12 % at 1.0.",
                Ratio(of="HR-O / HR, average response", least=0.78, most=0.98, at=1.0),
                Trend(of="HR-O / HR, average response", by=1.5),
            ),
        ),
    ),
    Experiment(
        id="sharaf-21",
        paper="sharaf",
        figure="21",
        title="ℓ2 norm of slowdowns of queries over two streams",
        note="Window joins of two Poisson streams, windows of 1 to 10 s.",
        panels=(
            Panel(
                title="ℓ2 norm of slowdowns",
                testbed="sharaf",
                options={"variant": "joins", "queries": 500, "tuples": 2_000},
                quick=QUICK_JOINS,
                x=Axis(
                    name="utilization", values=(0.3, 0.5, 0.7, 0.8, 0.9), quick=(0.5, 0.7, 0.9),
                    sets="utilisation",
                ),
                curves=curves("RR", "FCFS", "HR", "HNR", "BSD"),
                measure="norm_slowdown",
            ),
        ),
        statements=(
            statement("BSD has the lowest ℓ2 norm.", Best(label="BSD")),
            statement("It is up to 14 % below HNR.", lower("BSD", "HNR", 0.14, x=0.9)),
            statement(
                "At 0.9 it is 17 times better than RR and 15 times better than FCFS.",
                Ratio(of="RR", to="BSD", least=8, most=34, at=0.9),
                Ratio(of="FCFS", to="BSD", least=7.5, most=30, at=0.9),
            ),
        ),
    ),
    _aggregates(22, "Tardiness of aggregate queries", (*LOW, *HIGH)),
    _aggregates(23, "Tardiness of aggregate queries at low utilization", LOW),
    _aggregates(24, "Tardiness of aggregate queries at high utilization", HIGH),
    Experiment(
        id="sharaf-26",
        paper="sharaf",
        figure="26",
        title="Chain under the other measures",
        note=f"{NOTE} Utilization 0.97. Every measure is over that of Chain.",
        panels=(
            Panel(
                title="measure over that of Chain",
                kind="bars",
                testbed="sharaf",
                options={"queries": 500, "tuples": 20_000, "utilisation": 0.97},
                quick=QUICK,
                x=Axis(
                    name="measure",
                    values=(
                        "mean_response", "mean_slowdown", "norm_response", "norm_slowdown",
                        "queue",
                    ),
                    labels=("response", "slowdown", "ℓ2 response", "ℓ2 slowdown", "memory"),
                ),
                curves=tuple(
                    Curve(
                        label=label, policy=POLICIES[label],
                        over=Curve(label="Chain", policy="chain"),
                    )
                    for label in ("HR", "HNR", "BRT", "BSD", "Chain")
                ),
                measure="{x}",
                y=("over Chain", ""),
            ),
        ),
        statements=(
            statement(
                "Chain has 3 times the average slowdown of HNR, which needs twice the memory.",
                Ratio(of="Chain", to="HNR", least=2, most=4.5, at="mean_slowdown"),
                Ratio(of="HNR", to="Chain", least=1.4, most=2.8, at="queue"),
            ),
            statement(
                "Chain has 2.2 times the ℓ2 norm of slowdowns of BSD, which needs 1.85 times the "
                "memory.",
                Ratio(of="Chain", to="BSD", least=1.5, most=3.3, at="norm_slowdown"),
                Ratio(of="BSD", to="Chain", least=1.3, most=2.6, at="queue"),
            ),
            statement(
                "Chain is worse than the policy of each measure.",
                *(
                    Ratio(of="Chain", to=label, least=1.0, at=measure)
                    for label, measure in (
                        ("HR", "mean_response"), ("HNR", "mean_slowdown"),
                        ("BRT", "norm_response"), ("BSD", "norm_slowdown"),
                    )
                ),
            ),
        ),
    ),
)  # fmt: skip
