"""Aurora's figures of tuple batching: trains, and where the overhead goes (Aurora §5.4, §5.5)."""

from headgate.experiments.experiment import Axis, Curve, Panel
from headgate.experiments.papers.aurora_batching import (
    CALL,
    FULL,
    NOTE,
    OVERHEADS,
    QUICK,
    figure,
    statement,
)
from headgate.experiments.statement import Ratio, Trend

BURSTS = tuple(
    Curve(label=f"bursts of {number}", policy="baat", options={"burst": number})
    for number in (1, 2, 4)
)
STACK = Axis(
    name="batching",
    values=("taat", "baat", "aaat(traversal=mc)"),
    labels=("TAAT", "BAAT (trains)", "MC (superboxes)"),
)
PARTS = {
    "worker": "call_overhead", "storage": "storage_overhead", "scheduler": "scheduler_overhead",
}  # fmt: skip
OVERLOADED = {"apps": 4, "capacity": 1.5}
TRAINS = (
    figure(
        "8", "Trains of tuples",
        (
            Panel(
                title="overhead of a tuple, one tree of fan-out 2, capacity 0.3",
                testbed="aurora",
                options={"apps": 1, "fanout": 2, "capacity": 0.3, **CALL, **FULL},
                quick=QUICK,
                settings=OVERHEADS,
                x=Axis(
                    name="train size, share of the queue", values=(0.2, 0.4, 0.6, 0.8, 1.0),
                    sets=":train_fraction",
                ),
                curves=BURSTS,
                measure="delay",
            ),
            Panel(
                title="overhead of a tuple by capacity, train size 0.2",
                testbed="aurora",
                options={"apps": 1, "fanout": 2, **CALL, **FULL},
                quick=QUICK,
                settings={**OVERHEADS, "train_fraction": 0.2},
                x=Axis(name="capacity", values=(0.05, 0.1, 0.2, 0.3, 0.4, 0.5), sets="capacity"),
                curves=BURSTS,
                measure="delay",
            ),
        ),
        statement(
            "Without bursts the train size has no effect.",
            Trend(of="bursts of 1", rises=False, by=0.95, most=1.05),
            Trend(of="bursts of 1", by=0.95, most=1.05),
        ),
        statement(
            "At a train size of 0.2, bursts of 4 have four times the overhead of no bursts.",
            Ratio(of="bursts of 4", to="bursts of 1", least=2.5, most=6.0, at=0.2),
            why="Overhead is execution time less processing time, so it counts waiting, and the "
            "ratio depends on how much single tuples wait: see the second panel. The paper gives "
            "no capacity.",
        ),
        statement(
            "Longer trains reduce it markedly.", Trend(of="bursts of 4", rises=False, by=1.2)
        ),
        statement(
            "Even with whole queues the bursty load does not fully reach the one without bursts.",
            Ratio(of="bursts of 4", to="bursts of 1", least=1.0, at=1.0),
        ),
        note=f"{NOTE} Overhead is the mean response less the processing time of a tuple, as in the "
        "paper. Bursts of different inputs come at different times. The paper does not give the "
        "capacity: 0.3 is our choice.",
    ),
    figure(
        "9", "Where the overhead goes",
        (
            Panel(
                title="overhead by part",
                kind="stacked",
                testbed="aurora",
                options={**OVERLOADED, **CALL, **FULL},
                quick=QUICK,
                settings=OVERHEADS,
                x=STACK,
                curves=tuple(
                    Curve(label=part, policy="{x}", measure=measure, part=part)
                    for part, measure in PARTS.items()
                ),
                measure="overhead",
            ),
            Panel(
                title="time for all tuples",
                kind="bars",
                testbed="aurora",
                options={**OVERLOADED, **CALL, **FULL},
                quick=QUICK,
                settings=OVERHEADS,
                x=STACK,
                curves=(
                    Curve(label="overhead", policy="{x}", measure="overhead"),
                    Curve(label="duration", policy="{x}", measure="seconds"),
                ),
                measure="seconds",
            ),
            Panel(
                title="share of the overhead",
                kind="bars",
                testbed="aurora",
                options={**OVERLOADED, **CALL, **FULL},
                quick=QUICK,
                settings=OVERHEADS,
                x=STACK,
                curves=tuple(
                    Curve(
                        label=part, policy="{x}", measure=measure,
                        over=Curve(label="all", policy="{x}", measure="overhead"),
                    )
                    for part, measure in PARTS.items()
                ),
                measure="overhead",
                y=("share of the overhead", ""),
            ),
            Panel(
                title="overhead by capacity",
                testbed="aurora",
                options={"apps": 4, **CALL, **FULL},
                quick=QUICK,
                settings=OVERHEADS,
                x=Axis(name="capacity", values=(0.5, 0.7, 0.9, 1.1, 1.5), quick=(0.5, 0.9, 1.5),
                       sets="capacity"),
                curves=(
                    Curve(label="TAAT", policy="taat"),
                    Curve(label="BAAT", policy="baat"),
                    Curve(label="MC", policy="aaat(traversal=mc)"),
                ),
                measure="overhead",
            ),
        ),
        statement(
            "Tuple at a time is much worse than trains and superboxes.",
            Ratio(of="duration", to="duration", at="taat", other_at="baat", least=1.2, panel=1),
        ),
        statement(
            "Superboxes almost halve the time of trains.",
            Ratio(
                of="duration", to="duration", at="aaat(traversal=mc)", other_at="baat",
                least=0.4, most=0.7, panel=1,
            ),
            why="At 1.5 times the capacity queues are long, so the trains of BAAT already save "
            "most calls (last panel): its overhead is a twentieth of the time. In the paper it "
            "must be about half, with overheads that it does not publish.",
        ),
        statement(
            "The scheduler's share of the overhead grows with batching.",
            Trend(of="scheduler", steadily=True, panel=2),
            why="Here BAAT has one decision per box call and MC one per traversal, and each costs "
            "the same, so that decisions become fewer at least as fast as box calls. In the paper "
            "box calls become fewer faster than scheduling steps, and steps take longer the more "
            "is batched; it does not say how much.",
        ),
        note=f"{NOTE} Four trees; tuples arrive at 1.5 times the capacity, so that all three are "
        "busy all the time.",
    ),
)  # fmt: skip
