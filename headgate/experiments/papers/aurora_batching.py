"""Aurora's figures of operator batching: threads, superboxes, traversals (Aurora §3, §5)."""

from headgate.experiments.experiment import Axis, Curve, Experiment, Panel
from headgate.experiments.run import WHOLE_QUEUES
from headgate.experiments.statement import (
    Claim,
    MeanOverTime,
    Ordered,
    Ratio,
    Statement,
    Trend,
)

SEEDS = 6
OVERHEADS = {"storage_s": 0.0001, "decision_s": 0.0002}
"""Seconds per access to the storage manager and per decision: our choice. With a box call of 0.1 ms
they are of the order of the cheapest box."""

CALL = {"overhead_s": 0.0001}
NOTE = (
    "The paper's overheads are not published: a box call costs 0.1 ms, an access to the storage"
    " manager 0.1 ms and a decision 0.2 ms beside boxes of 0.1 to 1 ms a tuple."
)
CONSTANTS = "The size depends on the overheads, which the paper does not publish."
FULL = {"tuples": 100_000}
QUICK = {"tuples": 20_000}


def statement(text: str, *claims: Claim, why: str = CONSTANTS) -> Statement:
    return Statement(text=text, claims=claims, why=why)


def figure(
    number: str, title: str, panels: tuple[Panel, ...], *statements: Statement, note: str = NOTE
) -> Experiment:
    id_number = number if "." in number else f"{int(number):02}"
    return Experiment(
        id=f"aurora-{id_number}", paper="aurora", figure=number, title=title, note=note,
        panels=panels, statements=statements, seeds=SEEDS,
    )  # fmt: skip


MC, ML, MM = (
    Curve(label=name.upper(), policy=f"aaat(traversal={name})") for name in ("mc", "ml", "mm")
)
CAPACITY = Axis(
    name="capacity", values=(0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
    quick=(0.1, 0.3, 0.5, 0.7, 0.9), sets="capacity",
)  # fmt: skip
BATCHING = (
    figure(
        "3", "Thread-based against state-based execution",
        (
            Panel(
                title="average latency",
                testbed="aurora",
                options={"fanout": 1, "rate_per_s": 1.5, **CALL, **FULL},
                quick=QUICK,
                x=Axis(
                    name="operators", values=(5, 10, 20, 40, 80, 120, 160), sets="apps",
                    labels=(25, 50, 100, 200, 400, 600, 800), quick=(5, 20, 80, 160),
                ),
                curves=(
                    Curve(label="Aurora", policy="baat", settings={"decision_s": 0.00002}),
                    Curve(
                        label="thread per box", policy="rr-box",
                        settings={"switch_s": 2e-6, **WHOLE_QUEUES},
                    ),
                ),
                measure="mean_response",
            ),
        ),
        statement(
            "Latency grows much less in Aurora than with a thread per box.",
            Ratio(of="thread per box", to="Aurora", least=1.0),
            Trend(of="thread per box", to="Aurora", by=1.2),
        ),
        note="Chains of five boxes, 1.5 tuples/s each. A switch between threads costs 2 µs for "
        "every thread that there is, a decision of Aurora 20 µs, a box call 0.1 ms. A thread runs "
        "until the queue of its box is empty. On Spark, "
        "the baseline is native Structured Streaming: a thread per query, since Spark fuses a chain"
        " of filters.",
    ),
    figure(
        "5", "Box against application scheduling",
        (
            Panel(
                title="average latency, five trees",
                testbed="aurora",
                options={"apps": 5, **CALL, **FULL},
                quick=QUICK,
                settings=OVERHEADS,
                x=CAPACITY,
                curves=(
                    Curve(label="RR-BAAT", policy="baat"),
                    Curve(label="MC-AAAT", policy="aaat(traversal=mc)"),
                ),
                measure="mean_response",
            ),
            Panel(
                title="length of the run over the time in which tuples arrive, five trees",
                testbed="aurora",
                options={"apps": 5, **CALL, **FULL},
                quick=QUICK,
                settings=OVERHEADS,
                x=CAPACITY,
                curves=(
                    Curve(label="RR-BAAT", policy="baat"),
                    Curve(label="MC-AAAT", policy="aaat(traversal=mc)"),
                ),
                measure="stretch",
            ),
        ),
        statement(
            "Box-at-a-time scheduling saturates at a much lower rate.",
            Ratio(of="RR-BAAT", to="MC-AAAT", least=2.0, at=0.9),
            Trend(of="RR-BAAT", by=10.0, since=0.1, until=0.9),
        ),
        statement(
            "Applications as superboxes still keep up with the arrivals at 90 % of the capacity.",
            Ratio(of="MC-AAAT", most=1.05, at=0.9, panel=1),
        ),
    ),
    figure(
        "6", "Min-cost against min-latency traversals",
        (
            Panel(
                title="average latency, one tree at a capacity of 0.5",
                testbed="aurora",
                options={"apps": 1, "capacity": 0.5, **CALL, **FULL},
                quick=QUICK,
                x=Axis(
                    name="box cost", unit="s a tuple", sets="cost_s",
                    values=(
                        "0.00005+0.00005", "0.0001+0.0001", "0.0002+0.0002", "0.0005+0.0005",
                        "0.001+0.001", "0.002+0.002",
                    ),
                    labels=(0.00005, 0.0001, 0.0002, 0.0005, 0.001, 0.002),
                ),
                curves=(MC, ML),
                measure="mean_response",
            ),
        ),
        statement(
            "For small box costs MC is better.",
            Ratio(of="MC", to="ML", most=1.0, at="0.00005+0.00005"),
        ),
        statement(
            "For larger box costs ML is better.",
            Ratio(of="ML", to="MC", most=1.0, at="0.002+0.002"),
        ),
        note="A box call costs 0.1 ms.",
    ),
    figure(
        "7", "Memory of the traversals over time",
        (
            Panel(
                title="tuples in the queues, over those under MM",
                kind="time",
                testbed="aurora",
                options={
                    "apps": 1, "backlog": True, "least_selectivity": 0.2, "tuples": 1_620, **CALL
                },
                x=Axis(name="time", unit="s", values=(0,)),
                curves=tuple(
                    Curve(label=curve.label, policy=curve.policy, over=MM)
                    for curve in (MM, MC, ML)
                ),
                measure="pending",
                y=("queue size over that of MM", ""),
                every_s=0.05,
                until_s=1.0,
            ),
        ),
        statement(
            "MM needs the least memory on average over the run.", MeanOverTime(labels=("MM",)),
            why="All tuples wait at the leaves when the run begins.",
        ),
        statement("ML needs the most, MC is second.", MeanOverTime(labels=("MC", "ML"))),
        note="One tree with 20 tuples at each leaf; selectivities from 0.2 to 1 (with the paper's "
        "selectivity of 1 no box would free memory).",
    ),
)  # fmt: skip
DEPTH = figure(
    "5.3", "Box overhead of the traversals by depth",
    (
        Panel(
            title="box overhead, one tree at a capacity of 0.5",
            testbed="aurora",
            options={"apps": 1, "capacity": 0.5, **CALL, **FULL},
            quick=QUICK,
            x=Axis(name="depth", values=(2, 3, 4, 5, 6), quick=(2, 4, 6), sets="depth"),
            curves=(MC, ML),
            measure="call_overhead",
        ),
        Panel(
            title="box overhead, one tuple at every leaf",
            testbed="aurora",
            options={"apps": 1, "backlog": True, "tuples": 1, **CALL},
            x=Axis(name="depth", values=(2, 3, 4, 5, 6), quick=(2, 4, 6), sets="depth"),
            curves=(MC, ML),
            measure="call_overhead",
        ),
    ),
    statement("MC has less box overhead at every depth.", Ordered(labels=("MC", "ML"))),
    statement(
        "At a capacity of 0.5 the difference between the two grows with depth.",
        Trend(of="ML", minus="MC", steadily=True),
        why="Evenly spaced tuples at half the capacity come one or two to a traversal. Two "
        "paths from random leaves share only the boxes next to the root, so MC saves the same "
        "few calls at every depth.",
    ),
    statement(
        "With a tuple at every leaf, the difference grows with depth.",
        Trend(of="ML", minus="MC", steadily=True, panel=1),
    ),
    note="A statement of §5.3 without a figure.",
)  # fmt: skip
