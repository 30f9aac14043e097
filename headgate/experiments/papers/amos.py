"""AMoS's figures: four algorithms, and the framework that chooses among them (AMoS §2.3, §4)."""

from collections.abc import Mapping

from headgate.experiments.experiment import Axis, Curve, Experiment, Panel
from headgate.experiments.rank import NoWorseThanMedian, Often
from headgate.experiments.statement import Best, Claim, MeanOverTime, Ratio, Statement

FULL = {"tuples": 20_000}
QUICK = {"tuples": 5_000}
SINGLE = (
    Curve(label="RR", policy="rr-box"),
    Curve(label="FIFO", policy="fcfs"),
    Curve(label="MTIQ", policy="mtiq"),
    Curve(label="Chain", policy="chain"),
)
NAMES = tuple(curve.label for curve in SINGLE)
BATCH = Curve(label="MTIQ", policy="mtiq(batch=true)")
ALONE = (
    *SINGLE[:2], BATCH, Curve(label="MTIQ, one tuple a call", policy="mtiq"), SINGLE[3]
)  # fmt: skip
"""Section 2.1 has MTIQ as a batch scheduler. In AMoS's library it takes one tuple, as all do."""

METRICS = {
    "mean_response": "average tuple delay", "output_rate": "output rate", "queue": "queue size",
}  # fmt: skip
OVER_TIME = {"mean_response": "mean_response_s", "output_rate": "results", "queue": "pending"}
WEIGHTS = {
    "amos-05": {"mean_response": 1.0},
    "amos-06": {"queue": 1.0},
    "amos-07": {"mean_response": 0.7, "output_rate": 0.3},
    "amos-08": {"output_rate": 0.7, "mean_response": 0.3},
    "amos-09": {"mean_response": 1 / 3, "output_rate": 1 / 3, "queue": 1 / 3},
}
"""By figure, the weights of what is required."""

STARTED = {"overhead_s": 0.0002}
"""What it costs to start an operator, a context switch: our choice, the paper names none."""

NOTE = (
    "Poisson arrivals whose mean changes every 5 s by up to 75 %, load 0.8. The paper's plans are"
    " illegible but for a few numbers, so both are ours. Captions of figures 5, 7 and 8 are lost:"
    " both plans are run. At this load nearly all is output at once, so that output rates over the"
    " whole run are equal."
)
LOTTERY = (
    "The paper's scores lie near 1 for every algorithm (last panel), so its roulette is close to an"
    " even lottery, and AMoS also takes the turns of the worst algorithm."
)


def _specification(weights: Mapping[str, float]) -> str:
    """Return the performance specification of a figure."""
    rows = []
    for measure, weight in weights.items():
        metric = {"output_rate": "output_per_s", "queue": "pending"}.get(measure, "mean_response_s")
        way = "maximize" if measure == "output_rate" else "minimize"
        rows.append(f"{metric}:{way}:{weight!r}")
    return ",".join(rows)


SPECIFICATIONS = {figure: _specification(weights) for figure, weights in WEIGHTS.items()}


def _amos(specification: str) -> Curve:
    rows = specification.replace(",", "+")
    policy = f"amos(policies=rr-box+fcfs+mtiq+chain,specification={rows})"
    return Curve(label="AMoS", policy=policy)


def _statement(text: str, *claims: Claim, why: str = LOTTERY) -> Statement:
    return Statement(text=text, claims=claims, why=why)


def _by_plan(measure: str, curves: tuple[Curve, ...], plans: tuple[int, ...]) -> Panel:
    return Panel(
        title=f"{METRICS[measure]} over the whole run",
        kind="bars",
        testbed="amos",
        options={**FULL, **STARTED},
        quick=QUICK,
        x=Axis(name="plan", values=plans, sets="plan"),
        curves=curves,
        measure=measure,
    )


def _over_time(measure: str, curves: tuple[Curve, ...], plan: int) -> Panel:
    name = "results so far" if measure == "output_rate" else METRICS[measure]
    return Panel(
        title=f"{name} over time, plan {plan}",
        kind="time",
        testbed="amos",
        options={"plan": plan, **FULL, **STARTED},
        quick=QUICK,
        x=Axis(name="time", unit="s", values=(0,)),
        curves=curves,
        measure=OVER_TIME[measure],
        every_s=1.0,
        until_s=40.0,
    )


def _in_charge(curve: Curve, plan: int) -> Panel:
    return Panel(
        title=f"score of each algorithm over time, plan {plan}",
        kind="time",
        testbed="amos",
        options={"plan": plan, **FULL, **STARTED},
        quick=QUICK,
        x=Axis(name="time", unit="s", values=(0,)),
        curves=tuple(
            Curve(label=single.label, policy=curve.policy, measure=f"score:{single.policy}")
            for single in SINGLE
        ),
        measure="score:fcfs",
        y=("score", ""),
        every_s=1.0,
        until_s=40.0,
    )


def _figure(
    figure: int, title: str, plans: tuple[int, ...], *statements: Statement
) -> Experiment:  # fmt: skip
    name = f"amos-{figure:02}"
    weights, amos = WEIGHTS[name], _amos(SPECIFICATIONS[name])
    curves = (*SINGLE, amos)
    return Experiment(
        id=name,
        paper="amos",
        figure=str(figure),
        title=title,
        note=NOTE,
        panels=(
            *(_by_plan(measure, curves, plans) for measure in weights),
            *(_over_time(measure, curves, plan) for measure in weights for plan in plans),
            _in_charge(amos, plans[-1]),
        ),
        statements=statements,
    )


def _best(measure: str, panel: int) -> Statement:
    return _statement(
        f"AMoS is better than every single algorithm in {METRICS[measure]}.",
        Best(label="AMoS", most=measure == "output_rate", tolerance=0.0, panel=panel),
    )


AMOS = (
    Experiment(
        id="amos-02",
        paper="amos",
        figure="2",
        title="Four scheduling algorithms on plan 2",
        note=NOTE,
        panels=(
            _over_time("queue", ALONE, 2),
            _over_time("mean_response", ALONE, 2),
        ),
        statements=(
            _statement(
                "Chain and MTIQ have the smallest queues.",
                *(
                    MeanOverTime(labels=(small, other))
                    for small in ("Chain", "MTIQ") for other in ("FIFO", "RR")
                ),
                why="The paper's plan and its costs are not known.",
            ),
            _statement(
                "FIFO has a mediocre queue size.",
                MeanOverTime(labels=("Chain", "FIFO")),
            ),
            _statement(
                "FIFO has less delay than the others.",
                *(
                    MeanOverTime(labels=("FIFO", other), panel=1)
                    for other in ("RR", "MTIQ", "Chain")
                ),
                why="It has less than RR and Chain. The paper's plan, on which MTIQ is slow, is "
                "not known.",
            ),
            _statement(
                "MTIQ and Chain have the longest delays.",
                *(
                    MeanOverTime(labels=(short, long), panel=1)
                    for long in ("MTIQ", "Chain") for short in ("FIFO", "RR")
                ),
                why="Chain has; MTIQ, which takes whole queues, has not. With one tuple a call it "
                "has the longest, but then its queues are the longest, too.",
            ),
        ),
    ),
    Experiment(
        id="amos-4",
        paper="amos",
        figure="§3.5",
        title="What it costs to choose, by size of the plan",
        note="A statement of §3.5 and §4 without a figure: lines of 2 to 90 operators. It is an "
        "upper bound: the CPU time of the whole simulation, of which choosing is a part, over the "
        "duration of the run in virtual time. The CPU time is the least of three runs; FIFO alone "
        "stands beside AMoS with FIFO as its whole library, which makes the same decisions.",
        panels=(
            Panel(
                title="CPU time over the duration of the run",
                testbed="amos",
                options={"plan": "line", **FULL, **STARTED},
                quick=QUICK,
                x=Axis(
                    name="operators", values=(2, 10, 30, 90), quick=(2, 30, 90), sets="operators"
                ),
                curves=tuple(
                    Curve(
                        label=label, policy=policy,
                        over=Curve(label="run", policy=policy, measure="seconds"),
                    )
                    for label, policy in (("FIFO", "fcfs"), ("AMoS", "amos(policies=fcfs)"))
                ),
                measure="cpu_s",
                y=("CPU time over duration", ""),
                repeats=3,
            ),
        ),
        statements=(
            _statement(
                "To evaluate and choose costs nearly nothing: at most 1 % of the time.",
                Ratio(of="AMoS", most=0.01),
                why="The simulation itself takes most of this time.",
            ),
        ),
    ),
    _figure(
        5, "One requirement: minimal tuple delay", (1, 2),
        _best("mean_response", 0),
    ),
    _figure(
        6, "One requirement: minimal queue size", (1, 2),
        _statement(
            "AMoS often has a smaller queue than any single algorithm: at half of the instants.",
            Often(label="AMoS", panel=1), Often(label="AMoS", panel=2),
        ),
    ),
    _figure(
        7, "Two requirements: 70 % delay, 30 % output rate", (1, 2),
        _best("mean_response", 0),
        _statement(
            "AMoS is about average in output rate.",
            *(Ratio(of="AMoS", to=name, least=0.9, most=1.1, panel=1) for name in NAMES),
        ),
    ),
    _figure(
        8, "Two requirements: 70 % output rate, 30 % delay", (1, 2),
        _best("mean_response", 1),
        _statement(
            "AMoS is good at the output rate: no algorithm is more than 2 % better.",
            Best(label="AMoS", most=True, tolerance=0.02),
        ),
    ),
    _figure(
        9, "Three requirements of the same weight, plan 2", (2,),
        _statement(
            "AMoS does well in all three: no worse than the median algorithm.",
            NoWorseThanMedian(label="AMoS"), NoWorseThanMedian(label="AMoS", most=True, panel=1),
            NoWorseThanMedian(label="AMoS", panel=2),
        ),
    ),
)  # fmt: skip
