"""Aurora's figures of scheduling by quality of service (Aurora §6)."""

from headgate.experiments.experiment import Axis, Curve, Panel
from headgate.experiments.papers.aurora_batching import CALL, FULL, QUICK, figure, statement
from headgate.experiments.run import WHOLE_QUEUES
from headgate.experiments.statement import Ratio, Reaches, Trend

CAPACITY = Axis(
    name="capacity", values=(0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0), quick=(0.3, 0.5, 0.7, 0.9),
    sets="capacity",
)  # fmt: skip
PARTITIONS = Axis(
    name="partitions of each range", values=(1, 2, 5, 10, 20, 30, 60, 100, 180, 260),
    quick=(1, 5, 20, 60, 260),
)  # fmt: skip
LINES = {"variant": "lines", "apps": 200, "capacity": 0.6, **CALL, **FULL}
EXAMINED = {"decision_s": 0.00005, "examine_s": 1e-6, **WHOLE_QUEUES}
EXACT = Curve(label="slope-slack", policy="qos", fixed=True)
WALKED = Curve(label="buckets, walked", policy="qos-bucketed(gradients={x},slacks={x},walk=true)")
FOUND = Curve(label="buckets, found at once", policy="qos-bucketed(gradients={x},slacks={x})")
BUCKET_NOTE = (
    "200 straight lines of five boxes at a capacity of 0.6; a call takes the whole queue of a box."
    " A decision costs 50 µs, and 1 µs for every priority computed and every bucket visited or"
    " entered. The paper visits the buckets in order; Headgate finds the first one with"
    " boxes at once."
)
NOTHING_LOST = (
    "At this capacity queues are short, and every order delivers nearly all QoS. The paper does not"
    " give its capacity; its QoS of 0.8 says that it was overloaded. The second panel goes there."
)


def _qos(title: str, tuples: dict[str, int]) -> Panel:
    return Panel(
        title=title,
        testbed="aurora",
        options={"variant": "lines", **CALL, **FULL},
        quick=QUICK,
        settings={"decision_s": 0.0001, **tuples},
        x=CAPACITY,
        curves=(Curve(label="p-tuple", policy="qos"), Curve(label="RR", policy="baat")),
        measure="qos",
    )


QOS = (
    figure(
        "11", "QoS-aware scheduling",
        (
            _qos("average QoS, 20 applications", WHOLE_QUEUES),
            _qos("average QoS, 20 applications, one tuple a call", {"train_tuples": 1}),
        ),
        statement("The p-tuple policy delivers more QoS.", Ratio(of="p-tuple", to="RR", least=1.0)),
        statement(
            "The difference is significant at 0.7.",
            Ratio(of="p-tuple", to="RR", least=1.05, at=0.7),
            why="Five boxes take 3 ms, and QoS falls over a second: below saturation nothing waits "
            "long enough to lose any. In the paper QoS is lost even at low rates, so tuples waited "
            "there for hundreds of milliseconds, for reasons that it does not name.",
        ),
        statement(
            "Both fall drastically beyond 0.7.",
            Trend(of="p-tuple", rises=False, by=1.5, since=0.7, until=0.9),
            Trend(of="RR", rises=False, by=1.5, since=0.7, until=0.9),
            why="Neither saturates at 0.7 here: as queues grow, trains become longer and save "
            "calls and decisions. With one tuple a call both lose more (second panel).",
        ),
        note="20 lines of five boxes with tight or loose QoS graphs, drawn at random. A box call "
        "and a decision cost 0.1 ms each. Both policies take the whole queue of a box, since the "
        "paper's RR is box at a time, which it uses with trains.",
    ),
    figure(
        "13", "QoS by number of buckets",
        (
            Panel(
                title="average QoS",
                testbed="aurora",
                options=LINES,
                quick=QUICK,
                settings=EXAMINED,
                x=PARTITIONS,
                curves=(EXACT, WALKED, FOUND),
                measure="qos",
            ),
            Panel(
                title="average QoS by capacity",
                testbed="aurora",
                options={"variant": "lines", "apps": 200, **CALL, **FULL},
                quick=QUICK,
                settings=EXAMINED,
                x=Axis(
                    name="capacity", values=(0.6, 0.8, 0.9, 1.0, 1.2), quick=(0.6, 0.9, 1.2),
                    sets="capacity",
                ),
                curves=(
                    Curve(label="slope-slack", policy="qos"),
                    *(
                        Curve(
                            label=f"{count} x {count} buckets",
                            policy=f"qos-bucketed(gradients={count},slacks={count},walk=true)",
                        )
                        for count in (1, 20, 260)
                    ),
                    Curve(
                        label="20 x 20 buckets, found at once",
                        policy="qos-bucketed(gradients=20,slacks=20)",
                    ),
                ),
                measure="qos",
            ),
        ),
        statement(
            "One bucket is round robin, and much worse than slope-slack.",
            Ratio(of="buckets, walked", to="slope-slack", most=0.8, at=1),
            why=NOTHING_LOST,
        ),
        statement(
            "With 20 partitions the buckets are a little better than slope-slack.",
            Ratio(of="buckets, walked", to="slope-slack", least=1.0, at=20),
            why=NOTHING_LOST,
        ),
        statement(
            "With 260 partitions they are worse than slope-slack.",
            Ratio(of="buckets, walked", to="slope-slack", most=1.0, at=260),
        ),
        statement(
            "At some capacity one bucket is much worse than slope-slack.",
            Reaches(of="slope-slack", to="1 x 1 buckets", least=1.25, panel=1),
        ),
        statement(
            "At some capacity 20 partitions are a little better than slope-slack.",
            Reaches(of="20 x 20 buckets", to="slope-slack", least=1.02, panel=1),
            why="Slope-slack is charged for the boxes that wait only, and for no sorting, so that "
            "buckets have less to save than in the paper, and a walk visits up to 400 of them. "
            "Found at once they cost less (last curve).",
        ),
        note=BUCKET_NOTE,
    ),
    figure(
        "14", "Scheduler overhead by number of buckets",
        (
            Panel(
                title="scheduler overhead",
                testbed="aurora",
                options=LINES,
                quick=QUICK,
                settings=EXAMINED,
                x=PARTITIONS,
                curves=(EXACT, WALKED, FOUND),
                measure="scheduler_overhead",
            ),
        ),
        statement(
            "Beyond about 30 partitions the overhead rises.",
            Trend(of="buckets, walked", by=1.1, since=20, until=260),
        ),
        note=BUCKET_NOTE,
    ),
)  # fmt: skip
