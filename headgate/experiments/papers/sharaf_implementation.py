"""Sharaf's figures 27 to 34: cheap searches, shared operators, adaptation (§3.8.3 to §3.8.5)."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from headgate.experiments.experiment import Axis, Curve, Experiment, Panel
from headgate.experiments.run import CHEAPEST
from headgate.experiments.statement import Best, Claim, Ordered, Ratio, Statement, Trend, lower

SINGLE = {"queries": 500, "tuples": 20_000, "utilisation": 0.95}
QUICK = {"tuples": 2_000}
"""A search among clusters serves many of the 500 queries at once, so their number must stay."""

CHARGED = {"examine_s": CHEAPEST}
CHARGE_NOTE = (
    "Utilization 0.95. A decision pays the cost of the cheapest operator for every priority that it"
    " computes or compares, except under HNR and the hypothetical BSD. The thesis does not say"
    " whether figure 27 has clustered processing; it has it here, as in its figure 28."
)
CHARGES = (
    "At a load of 0.95 only 5 % of the time is left. A decision among m clusters costs up to m"
    " times the cheapest operator, so the charges overload the machine unless one decision serves"
    " many tuples."
)


def _statement(text: str, *claims: Claim, why: str = CHARGES) -> Statement:
    return Statement(text=text, claims=claims, why=why)


def _sharing(
    figure: int, title: str, measure: str, policy: str, below_max: float, below_sum: float
) -> Experiment:
    label = policy.upper()
    panel = Panel(
        title=f"{title}, {label}",
        testbed="sharaf",
        options={"variant": "shared", "queries": 500, "tuples": 20_000},
        quick={"queries": 100, "tuples": 3_000},
        x=Axis(
            name="utilization",
            values=(0.5, 0.7, 0.8, 0.9, 0.95),
            quick=(0.5, 0.7, 0.9, 0.95),
            sets="utilisation",
        ),
        curves=tuple(
            Curve(label=name, policy=policy, options={"shared_priority": name.lower()})
            for name in ("Max", "Sum", "PDT")
        ),
        measure=measure,
    )
    alike = {**panel.options, "same_cost": True}
    return Experiment(
        id=f"sharaf-{figure}",
        paper="sharaf",
        figure=str(figure),
        title=f"{title} of queries that share a select, {label}",
        note="Sets of ten queries share a select. Its priority is that of its best segment (Max), "
        "of all (Sum), or of its priority-defining tree (PDT).",
        panels=(
            panel, replace(panel, title=f"{title}, {label}, one cost in a set", options=alike),
        ),
        statements=(
            _statement("PDT is best.", Best(label="PDT"), why=SETS),
            _statement(
                f"PDT is {100 * below_max:.0f} % below Max and {100 * below_sum:.0f} % below Sum.",
                lower("PDT", "Max", below_max, x=0.95),
                lower("PDT", "Sum", below_sum, x=0.95),
                why=SETS,
            ),
            _statement(
                f"If a set has one cost, PDT is {100 * below_max:.0f} % below Max and "
                f"{100 * below_sum:.0f} % below Sum.",
                lower("PDT", "Max", below_max, x=0.95, panel=1),
                lower("PDT", "Sum", below_sum, x=0.95, panel=1),
                why=SETS,
            ),
        ),
    )  # fmt: skip


SETS = (
    "The thesis does not say how the queries of a set differ. Here each has a join and a project of"
    " its own cost and selectivity. The more segments differ, the more PDT gains: in the second"
    " panel all operators of a set have one cost."
)
DRIFT = {"variant": "drift", "queries": 200, "tuples": 100_000}
FAST = {"tuples": 10_000}
QUICK_DRIFT = {"queries": 30}
ADAPTIVE = (
    ("HR-A / HR", "hr", "mean_response"),
    ("HNR-A / HNR", "hnr", "mean_slowdown"),
    ("BRT-A / BRT", "brt", "norm_response"),
    ("BSD-A / BSD", "bsd", "norm_slowdown"),
)
DRIFT_NOTE = (
    "Values are Gaussian with a mean that grows by one in each of 100 intervals of 1 000 tuples. In"
    " the thesis the mean leaves the range of the values; here they wrap around. Adaptive over"
    " static policy, each in its own measure."
)
DRIFT_WHY = (
    "The static policies depend on how far the true selectivities are from those of uniform values"
    " on average over the run. Wrapped values visit all of the range. If they do not wrap around,"
    " hardly any tuple passes in the second half of the run (second panel)."
)
SLOW_DRIFT = (
    "A selectivity takes many intervals of 1 000 tuples to change, so windows of 10 to 100 tuples"
    " and large α follow it about equally well; only long windows and small α come too late. Their"
    " sampling errors are small beside the differences between the queries. In the second panel the"
    " mean moves ten times as fast, and short windows and large α gain more."
)


def _drift(
    figure: int, title: str, x: Axis, also: str, options: Mapping[str, Any], *statements: Statement
) -> Experiment:
    """Return a figure of adaptive over static policies, with a second panel of other options."""
    static_x = not x.sets.startswith(":")
    curves = tuple(
        Curve(
            label=label, policy=policy, options={"learns": True}, measure=measure,
            over=Curve(
                label=policy.upper(), policy=policy, measure=measure, fixed=not static_x
            ),
        )
        for label, policy, measure in ADAPTIVE
    )  # fmt: skip
    panel = Panel(
        title="adaptive over static",
        testbed="sharaf",
        options=DRIFT,
        quick=QUICK_DRIFT,
        x=x,
        curves=curves,
        measure="mean_response",
        y=("adaptive over static", ""),
    )
    return Experiment(
        id=f"sharaf-{figure}",
        paper="sharaf",
        figure=str(figure),
        title=title,
        note=DRIFT_NOTE,
        panels=(
            panel,
            replace(panel, title=f"{panel.title}, {also}", options={**DRIFT, **options}),
        ),
        statements=statements,
    )


CLUSTERS = Axis(
    name="clusters", values=(2, 4, 6, 8, 12, 16, 24, 48, 100, 200), quick=(2, 6, 12, 24, 100)
)
HYPOTHETICAL = Curve(label="BSD-Hypothetical", policy="bsd", fixed=True)
IMPLEMENTATION = (
    Experiment(
        id="sharaf-27",
        paper="sharaf",
        figure="27",
        title="ℓ2 norm of slowdowns by number of clusters",
        note=CHARGE_NOTE,
        panels=(
            Panel(
                title="ℓ2 norm of slowdowns",
                testbed="sharaf",
                options=SINGLE,
                quick=QUICK,
                x=CLUSTERS,
                curves=(
                    Curve(label="HNR", policy="hnr", fixed=True),
                    HYPOTHETICAL,
                    Curve(
                        label="BSD-Uniform", settings=CHARGED,
                        policy="bsd(search=uniform,clusters={x},clustered=true)",
                    ),
                    Curve(
                        label="BSD-Logarithmic", settings=CHARGED,
                        policy="bsd(search=fagin,clusters={x},clustered=true)",
                    ),
                ),
                measure="norm_slowdown",
            ),
        ),
        statements=(
            _statement(
                "With few clusters, logarithmic clusters may be worse than HNR.",
                Ratio(of="BSD-Logarithmic", to="HNR", least=1.0, at=2),
            ),
            _statement(
                "With 12 logarithmic clusters the norm is only 5 % above the hypothetical one.",
                Ratio(of="BSD-Logarithmic", to="BSD-Hypothetical", most=1.15, at=12),
            ),
            _statement(
                "Beyond 12 the norm rises again.",
                Trend(of="BSD-Logarithmic", since=12, until=100),
            ),
            _statement(
                "Uniform clusters start very high and fall slowly.",
                Ratio(of="BSD-Uniform", to="BSD-Logarithmic", least=1.5, at=6),
                Trend(of="BSD-Uniform", rises=False),
            ),
        ),
    ),
    Experiment(
        id="sharaf-28",
        paper="sharaf",
        figure="28",
        title="What each technique of BSD's implementation saves",
        note=CHARGE_NOTE,
        panels=(
            Panel(
                title="ℓ2 norm of slowdowns over that of the hypothetical BSD",
                kind="bars",
                testbed="sharaf",
                options=SINGLE,
                quick=QUICK,
                x=Axis(
                    name="implementation",
                    values=(
                        "bsd", "bsd(search=log,clusters=12)", "bsd(search=fagin,clusters=12)",
                        "bsd(search=fagin,clusters=12,clustered=true)",
                    ),
                    labels=("naive", "+ clustering", "+ pruning", "+ clustered processing"),
                ),
                curves=(
                    Curve(label="ℓ2 norm", policy="{x}", settings=CHARGED, over=HYPOTHETICAL),
                    Curve(label="nothing charged", policy="{x}", over=HYPOTHETICAL),
                ),
                measure="norm_slowdown",
                y=("over the hypothetical BSD", ""),
            ),
        ),
        statements=(
            _statement(
                "Naive BSD is more than ten times above the hypothetical one (the thesis: 65).",
                Ratio(of="ℓ2 norm", least=10, at="bsd"),
            ),
            _statement(
                "Every technique helps.", Trend(of="ℓ2 norm", rises=False, steadily=True)
            ),
            _statement(
                "With all of them the norm is only 5 % above the hypothetical one.",
                Ratio(
                    of="ℓ2 norm", most=1.15, at="bsd(search=fagin,clusters=12,clustered=true)"
                ),
                why=f"{CHARGES} The second curve shows what the clusters lose without charges.",
            ),
        ),
    ),
    _sharing(29, "Average response time", "mean_response", "hr", 0.21, 0.12),
    _sharing(30, "Average slowdown", "mean_slowdown", "hnr", 0.24, 0.18),
    _sharing(31, "ℓ2 norm of slowdowns", "norm_slowdown", "bsd", 0.10, 0.08),
    _drift(
        32, "Adaptive over static policies by deviation of the values",
        Axis(
            name="standard deviation", values=(5.0, 10.0, 15.0, 20.0, 25.0),
            quick=(5.0, 15.0, 25.0), sets="deviation",
        ),
        "values not wrapped", {"wraps": False},
        _statement(
            "Adaptive policies are always better.",
            *(Ratio(of=label, most=1.0) for label, _, _ in ADAPTIVE), why=DRIFT_WHY,
        ),
        _statement(
            "They gain most at low deviations.",
            *(Trend(of=label) for label, _, _ in ADAPTIVE), why=DRIFT_WHY,
        ),
        _statement(
            "At 25, HR-A is at 74 % of HR and HNR-A at 76 % of HNR.",
            Ratio(of="HR-A / HR", least=0.64, most=0.84, at=25.0),
            Ratio(of="HNR-A / HNR", least=0.66, most=0.86, at=25.0), why=DRIFT_WHY,
        ),
        _statement(
            "If values do not wrap around, HR-A is at 74 % of HR and HNR-A at 76 % of HNR at 25.",
            Ratio(of="HR-A / HR", least=0.64, most=0.84, at=25.0, panel=1),
            Ratio(of="HNR-A / HNR", least=0.66, most=0.86, at=25.0, panel=1), why=DRIFT_WHY,
        ),
        _statement(
            "At 5, HR-A is at 10 % of HR and HNR-A at 15 % of HNR.",
            Ratio(of="HR-A / HR", least=0.0, most=0.2, at=5.0),
            Ratio(of="HNR-A / HNR", least=0.05, most=0.25, at=5.0), why=DRIFT_WHY,
        ),
        _statement(
            "HR gains more than HNR, BRT and BSD.",
            Ordered(labels=("HR-A / HR", "HNR-A / HNR"), at=5.0),
            Ordered(labels=("HR-A / HR", "BRT-A / BRT"), at=5.0),
            Ordered(labels=("HR-A / HR", "BSD-A / BSD"), at=5.0), why=DRIFT_WHY,
        ),
    ),
    _drift(
        33, "Adaptation by length of the monitoring window",
        Axis(
            name="window", unit="tuples", values=(10, 25, 50, 100, 150, 200, 300, 500),
            quick=(10, 50, 100, 150, 500), sets=":window_tuples",
        ),
        "100 tuples an interval", FAST,
        _statement(
            "Windows of 50 to 150 tuples are best: better than 10, and better than 500.",
            Trend(of="HR-A / HR", rises=False, since=10, until=100),
            Trend(of="HR-A / HR", since=100, until=500),
            Trend(of="HNR-A / HNR", rises=False, since=10, until=100),
            Trend(of="HNR-A / HNR", since=100, until=500), why=SLOW_DRIFT,
        ),
    ),
    _drift(
        34, "Adaptation by the weight α of new measurements",
        Axis(
            name="α", values=(0.025, 0.05, 0.1, 0.175, 0.25, 0.4, 0.6, 0.9),
            quick=(0.025, 0.1, 0.175, 0.25, 0.9), sets=":smoothing",
        ),
        "100 tuples an interval", FAST,
        _statement(
            "Values of 0.1 to 0.25 are best: better than 0.025, and better than 0.9.",
            Trend(of="HR-A / HR", rises=False, since=0.025, until=0.175),
            Trend(of="HR-A / HR", since=0.175, until=0.9),
            Trend(of="HNR-A / HNR", rises=False, since=0.025, until=0.175),
            Trend(of="HNR-A / HNR", since=0.175, until=0.9), why=SLOW_DRIFT,
        ),
    ),
)  # fmt: skip
