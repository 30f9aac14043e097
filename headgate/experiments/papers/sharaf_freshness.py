"""Sharaf's figures 35 to 43: freshness of the results (Sharaf §4.1, §4.5)."""

from dataclasses import replace

from headgate.experiments.experiment import Axis, Curve, Experiment, Panel
from headgate.experiments.run import CHEAPEST, WHOLE_QUEUES
from headgate.experiments.statement import (
    Best,
    Claim,
    Ordered,
    Ratio,
    Statement,
    Trend,
    lower,
)

SETTING = {"variant": "freshness", "queries": 250, "tuples": 10_000}
QUICK = {"queries": 100, "tuples": 1_500}
CHARGED = {"examine_s": CHEAPEST}
LOAD = Axis(
    name="utilization",
    values=(0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95),
    quick=(0.1, 0.5, 0.8, 0.95),
    sets="utilisation",
)
NOTE = (
    "250 queries over 10 Poisson streams, 5 of them in bursts of 10. FAS pays the cost of the"
    " cheapest operator for every operation on its calendar queue; the other FAS curves pay"
    " nothing, and show the policy by itself. A step of FAS takes all waiting tuples of a query, as"
    " in its derivation. So does one of HR: in the thesis, FAS(0) is HR but for the charges."
)
OVERLOAD = (
    "Every arrival changes 25 priorities, and every change costs as much as an operator."
    " At low load results wait for these charges; near a load of 1 they exceed what is left free."
    " Without charges, see the curve without them."
)
ONE_BURST = (
    "Measured without charges. At low load one burst waits at a time, so all queries that have"
    " tuples have equally many, and FAS and HR differ only in how they order these queries."
)
LESS_TO_GAIN = (
    "Measured without charges. The thesis names 16 % of staleness for HR at a utilization of 0.95;"
    " where it is lower here, there is less to gain."
)
BETAS = (0.0, 0.25, 0.5, 0.75, 1.0)


def _statement(text: str, *claims: Claim, why: str = OVERLOAD) -> Statement:
    return Statement(text=text, claims=claims, why=why)


def _fas(beta: float = 1.0, *, charged: bool = False) -> Curve:
    label = "FAS" if beta == 1.0 else f"FAS({beta:g})"
    return Curve(
        label=f"{label}, charged" if charged else label,
        policy=f"fas(beta={beta:g})",
        settings=CHARGED if charged else {},
    )


HR = Curve(label="HR", policy="hr", settings=WHOLE_QUEUES)
OTHERS = (Curve(label="RR", policy="rr"), Curve(label="FCFS", policy="fcfs"), HR)


def _figure(
    figure: int, title: str, panels: tuple[Panel, ...], *statements: Statement, note: str = NOTE
) -> Experiment:
    return Experiment(
        id=f"sharaf-{figure}",
        paper="sharaf",
        figure=str(figure),
        title=title,
        note=note,
        panels=panels,
        statements=statements,
    )


def _by_load(title: str, measure: str, curves: tuple[Curve, ...]) -> Panel:
    return Panel(
        title=title, testbed="sharaf", options=SETTING, quick=QUICK, x=LOAD, curves=curves,
        measure=measure,
    )  # fmt: skip


def _by_tuple(title: str, measure: str) -> Panel:
    """Return a panel in which a step of FAS and HR takes one tuple."""
    tuples = {"train_tuples": 1}
    curves = replace(HR, settings=tuples), replace(_fas(), settings=tuples)
    return _by_load(f"{title}, one tuple a step", measure, curves)


MAIN = (*OTHERS, _fas(charged=True), _fas())
BY_BETA = (HR, _fas(0.0, charged=True), *map(_fas, BETAS))
FRESHNESS = (
    _figure(
        35,
        "Staleness, a worked example",
        (
            Panel(
                title="staleness of one output stream",
                kind="bars",
                testbed="sharaf",
                options={"variant": "stale"},
                x=Axis(name="query", values=("one operator of 1 s",)),
                curves=(Curve(label="staleness", policy="fcfs"),),
                measure="staleness",
            ),
        ),
        Statement(
            text="Staleness is (t1 + t2 + t3) / (Ty − Tx): updates arrive at 1, 5 and 5.5 s and "
            "take 1 s, so the stream is stale from 1 to 2, from 5 to 6 and from 6 to 7 s, for 3 of "
            "6 s.",
            claims=(Ratio(of="staleness", least=0.4999999, most=0.5000001),),
        ),
        note="One query with one operator; Tx is the first arrival, Ty the last result.",
    ),
    _figure(
        36, "Average staleness by utilization",
        (
            _by_load("average staleness", "staleness", MAIN),
            _by_tuple("average staleness", "staleness"),
        ),
        _statement("Staleness rises with load.", *(Trend(of=c.label) for c in MAIN)),
        _statement(
            "FAS has the lowest staleness at every load, with its charges.",
            Best(label="FAS, charged", among=("RR", "FCFS", "HR")),
        ),
        _statement(
            "FAS without charges has the lowest staleness at every load.",
            Best(label="FAS", among=("RR", "FCFS", "HR")),
            why=ONE_BURST,
        ),
        _statement(
            "FAS is 30 % below HR at 0.1 and 40 % below it at 0.95.",
            lower("FAS", "HR", 0.3, x=0.1), lower("FAS", "HR", 0.4, x=0.95),
            why=f"{ONE_BURST} {LESS_TO_GAIN}",
        ),
    ),
    _figure(
        37, "Average response time by utilization",
        (
            _by_load("average response time", "mean_response", MAIN),
            _by_tuple("average response time", "mean_response"),
        ),
        _statement("HR has the lowest response time.", Best(label="HR")),
        _statement(
            "FAS is 23 % above HR at 0.95.",
            Ratio(of="FAS", to="HR", least=1.13, most=1.33, at=0.95),
            why="Measured without charges. FAS delays queries with many waiting tuples, since they "
            "stay stale for longest, and so it delays many results. In the second panel a step "
            "takes one tuple.",
        ),
    ),
    _figure(
        38, "Response time for different β",
        (_by_load("average response time", "mean_response", BY_BETA),),
        _statement(
            "Response time falls with β.",
            Ordered(labels=tuple(_fas(beta).label for beta in BETAS), at=0.95),
        ),
        _statement(
            "With β = 0 it is slightly above HR, because of the charges.",
            Ratio(of="FAS(0), charged", to="HR", least=1.0, most=1.1, at=0.95),
        ),
    ),
    _figure(
        39, "Staleness for different β",
        (_by_load("average staleness", "staleness", BY_BETA),),
        _statement(
            "Staleness falls as β grows.",
            Ordered(labels=tuple(_fas(beta).label for beta in BETAS[::-1]), at=0.95),
        ),
    ),
    _figure(
        40, "Staleness against response time",
        (
            Panel(
                title="staleness against response time",
                kind="scatter",
                testbed="sharaf",
                options=SETTING,
                quick=QUICK,
                x=Axis(name="utilization", values=(0.95,), sets="utilisation"),
                curves=(*OTHERS, *map(_fas, BETAS)),
                measure="staleness",
                x_measure="mean_response",
            ),
        ),
        _statement(
            "FAS(0.25) has 20 % less staleness than HR and a response time 14 % above it.",
            lower("FAS(0.25)", "HR", 0.2),
            Ratio(of="FAS(0.25)", to="HR", least=1.04, most=1.24, axis="x"),
            why=LESS_TO_GAIN,
        ),
        _statement(
            "FAS has 40 % less staleness than HR and a response time 23 % above it.",
            lower("FAS", "HR", 0.4),
            Ratio(of="FAS", to="HR", least=1.13, most=1.33, axis="x"),
            why=LESS_TO_GAIN,
        ),
        note=f"{NOTE} Utilization 0.95.",
    ),
    _figure(
        41, "Staleness by skew of the selectivities",
        (
            Panel(
                title="average staleness",
                testbed="sharaf",
                options={**SETTING, "cost_classes": 1, "utilisation": 0.95},
                quick=QUICK,
                x=Axis(
                    name="Zipf parameter", values=(0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0),
                    quick=(0.0, 1.0, 2.0, 4.0), sets="zipf",
                ),
                curves=MAIN,
                measure="staleness",
            ),
        ),
        _statement("Staleness rises with skew.", *(Trend(of=c.label) for c in MAIN)),
        _statement(
            "FAS is 39 % below HR without skew and 55 % below it with the most.",
            lower("FAS", "HR", 0.39, x=0.0), lower("FAS", "HR", 0.55, x=4.0),
            why=LESS_TO_GAIN,
        ),
        note=f"{NOTE} Utilization 0.95; all operators have the same cost.",
    ),
    _figure(
        42, "Staleness by number of bursty streams",
        (
            Panel(
                title="staleness of FAS over that of HR",
                testbed="sharaf",
                options={**SETTING, "utilisation": 0.95},
                quick=QUICK,
                x=Axis(
                    name="bursty streams", values=(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10),
                    quick=(0, 2, 5, 8, 10), sets="bursty",
                ),
                curves=(
                    Curve(
                        label="FAS / HR, charged", policy="fas", settings=CHARGED, over=HR
                    ),
                    Curve(label="FAS / HR", policy="fas", over=HR),
                ),
                measure="staleness",
                y=("staleness over that of HR", ""),
            ),
            Panel(
                title="staleness of FAS over that of HR, all streams bursty",
                kind="bars",
                testbed="sharaf",
                options={**SETTING, "utilisation": 0.95},
                quick=QUICK,
                x=Axis(name="burstiness", values=("all streams bursty",)),
                curves=tuple(
                    Curve(
                        label=f"streams: {count}", policy="fas", options=streams,
                        over=replace(HR, options=streams),
                    )
                    for count in (1, 2, 10)
                    for streams in ({"streams": count, "bursty": count},)
                ),
                measure="staleness",
                y=("staleness over that of HR", ""),
            ),
        ),
        _statement(
            "The advantage of FAS grows up to 5 bursty streams and shrinks after that.",
            Trend(of="FAS / HR", rises=False, since=0, until=5),
            Trend(of="FAS / HR", since=5, until=10),
            why="Measured without charges. FAS gains as much if all queries read one bursty stream "
            "and so have equally long queues (second panel). Where ten tuples wait, most outputs "
            "are stale, so that FAS ranks mainly by cost, and HR by rate; more bursts do not "
            "change that.",
        ),
        _statement(
            "FAS is 40 % below HR with 5 bursty streams and 22 % below it with 10.",
            Ratio(of="FAS / HR", least=0.5, most=0.7, at=5),
            Ratio(of="FAS / HR", least=0.68, most=0.88, at=10),
            why=LESS_TO_GAIN,
        ),
        note=f"{NOTE} Utilization 0.95.",
    ),
    _figure(
        43, "Staleness by utilization, bursty traffic",
        (
            Panel(
                title="average staleness, two Pareto on/off streams",
                testbed="sharaf",
                options={**SETTING, "streams": 2, "bursty": 0, "spacing": "on/off"},
                quick=QUICK,
                x=LOAD,
                curves=MAIN,
                measure="staleness",
            ),
            Panel(
                title="average staleness, Bellcore and DEC packets",
                testbed="sharaf",
                options={**SETTING, "tuples": 10_000},
                quick=QUICK,
                x=LOAD,
                curves=MAIN,
                measure="staleness",
                traces=("bc-paug89-prefix100k.parquet", "dec-pkt-1-udp.parquet"),
            ),
        ),
        _statement(
            "FAS is best, then HR, then RR and FCFS (synthetic traffic).",
            *(Ordered(labels=("FAS", "HR", name), at=0.95) for name in ("RR", "FCFS")),
            why="Measured without charges.",
        ),
        _statement(
            "FAS is best, then HR, then RR and FCFS (recorded packets).",
            *(Ordered(labels=("FAS", "HR", name), at=0.95, panel=1) for name in ("RR", "FCFS")),
            why="Measured without charges.",
        ),
        note="The thesis replays TCP and UDP packets of LBL-PKT-4, which cannot be had.",
    ),
)  # fmt: skip
