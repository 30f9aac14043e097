"""The figures of Bai and Zaniolo: tuples whose costs are known in advance (BZ §6)."""

from headgate.experiments.experiment import Axis, Curve, Experiment, Panel
from headgate.experiments.statement import Best, Ratio, Statement, Trend

OUTLIERS = Axis(
    name="share of outliers",
    values=(0.0, 0.02, 0.04, 0.06, 0.08, 0.1, 0.15, 0.2),
    sets="outliers",
)
RR = (30, 60, 90)


def _curves(optimal: str, component: str, greedy: str) -> tuple[Curve, ...]:
    return (
        Curve(label="MSS", policy=optimal),
        Curve(label="component", policy=component),
        Curve(label="greedy", policy=greedy),
        *(Curve(label=f"RR {k}", policy=f"rr-k(k={k})") for k in RR),
    )


BZ = (
    Experiment(
        id="bz-12",
        paper="bz",
        figure="12",
        title="Average latency by share of outliers",
        note="Two operators with 300 waiting tuples each; the costs of single tuples are known. "
        "The component-based algorithm is `hr`, which runs the component of the highest rate "
        "first. Round robin starts at operator A.",
        panels=(
            Panel(
                title="average latency",
                testbed="bz",
                options={"variant": "latency"},
                x=OUTLIERS,
                curves=_curves("mss", "hr", "greedy"),
                measure="mean_response",
            ),
        ),
        statements=(
            Statement(
                text="Latency grows with the share of outliers for the optimal algorithm.",
                claims=(Trend(of="MSS", rises=True, by=1.01),),
            ),
            Statement(
                text="The component-based algorithm is always within 4 % of the optimal one.",
                claims=(Ratio(of="component", to="MSS", least=0.999, most=1.04),),
            ),
            Statement(
                text="Below 6 % of outliers the two are almost identical.",
                claims=tuple(
                    Ratio(of="component", to="MSS", most=1.01, at=x) for x in (0.0, 0.02, 0.04)
                ),
            ),
            Statement(
                text="Greedy suffers most from outliers: up to 50 % above the optimal algorithm.",
                claims=(
                    Trend(of="greedy", to="MSS", by=1.1),
                    Ratio(of="greedy", to="MSS", least=1.2, most=1.6, at=0.2),
                ),
            ),
            Statement(
                text="Alternating between buffers increases latency: every round robin is above "
                "the component-based algorithm.",
                claims=tuple(Ratio(of=f"RR {k}", to="component", least=1.02) for k in RR),
            ),
        ),
    ),
    Experiment(
        id="bz-13",
        paper="bz",
        figure="13",
        title="Total buffer size by share of outliers",
        note="A path of two operators, the first of which halves a tuple; 300 tuples wait at it. "
        "The measure is the size of both buffers, summed over time. The component-based algorithm "
        "is `chain`.",
        panels=(
            Panel(
                title="total buffer size over time",
                testbed="bz",
                options={"variant": "memory"},
                x=OUTLIERS,
                curves=_curves("mss-memory", "chain", "greedy-memory"),
                measure="bytes_seconds",
            ),
        ),
        statements=(
            Statement(
                text="Memory grows with the share of outliers.",
                claims=(Trend(of="MSS", by=1.01), Trend(of="component", by=1.01)),
            ),
            Statement(
                text="The tuple-based algorithm and Chain are almost identical.",
                claims=(Ratio(of="component", to="MSS", least=0.96, most=1.04),),
            ),
            Statement(
                text="Greedy suffers most from outliers.",
                claims=(
                    Trend(of="greedy", to="MSS", by=1.05),
                    Best(label="component", among=("greedy",)),
                ),
            ),
        ),
    ),
)
