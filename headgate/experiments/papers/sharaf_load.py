"""Sharaf's figures of a measure by system load: 7 to 10, 12, 13 and 25 (§3.8.1, §3.8.2)."""

from headgate.experiments.experiment import Curve, Experiment, Panel
from headgate.experiments.papers.sharaf_setting import (
    LOAD,
    NOTE,
    QUICK,
    TRACE,
    curves,
    statement,
)
from headgate.experiments.run import WHOLE_QUEUES
from headgate.experiments.statement import Best, Ratio, Statement, lower

TURNS = (
    "RR takes one tuple a turn. All queries read one stream, so it then decides as FCFS does. The"
    " length of a turn is not the reason: whole queues a turn change little (second panel). The"
    " arrivals of LBL-PKT-4 may be less bursty, but they cannot be had."
)
LONG_TURNS = Panel(
    title="Average slowdown, Pareto on/off, RR with turns of whole queues",
    testbed="sharaf",
    options={"queries": 500, "tuples": 20_000},
    quick=QUICK,
    x=LOAD,
    curves=(Curve(label="RR", policy="rr", settings=WHOLE_QUEUES), *curves("HNR")),
    measure="mean_slowdown",
)
REALISED = Panel(
    title="realized utilization, Pareto on/off",
    testbed="sharaf",
    options={"queries": 500, "tuples": 20_000},
    quick=QUICK,
    x=LOAD,
    curves=curves("HNR"),
    measure="utilisation",
)


def _by_load(
    figure: int, title: str, measure: str, labels: tuple[str, ...], *statements: Statement,
    more: tuple[Panel, ...] = (),
) -> Experiment:  # fmt: skip
    """Return a figure of a measure by utilization, also over a real trace if it is there."""
    synthetic = Panel(
        title=f"{title}, Pareto on/off",
        testbed="sharaf",
        options={"queries": 500, "tuples": 20_000},
        quick=QUICK,
        x=LOAD,
        curves=curves(*labels),
        measure=measure,
    )
    recorded = Panel(
        title=f"{title}, Bellcore packets",
        testbed="sharaf",
        options={"queries": 500, "tuples": 20_000},
        quick=QUICK,
        x=LOAD,
        curves=curves(*labels),
        measure=measure,
        traces=TRACE,
    )
    return Experiment(
        id=f"sharaf-{figure:02}",
        paper="sharaf",
        figure=str(figure),
        title=f"{title} by system load",
        note=NOTE,
        panels=(synthetic, *more, recorded),
        statements=statements,
    )


BY_LOAD = (
    _by_load(
        7, "Average slowdown", "mean_slowdown", ("RR", "SRPT", "HR", "HNR"),
        statement("HNR has the lowest average slowdown at every load.", Best(label="HNR")),
        statement("HR is next.", Best(label="HR", among=("RR", "SRPT"))),
        statement(
            "At 0.7, HNR is 51 % below SRPT and 18 % below HR.",
            lower("HNR", "SRPT", 0.51, x=0.7), lower("HNR", "HR", 0.18, x=0.7),
        ),
        statement(
            "At 0.7, HNR is 74 % below RR.", lower("HNR", "RR", 0.74, x=0.7), why=TURNS
        ),
        statement(
            "At 0.97, HNR is 53 % below SRPT and 20 % below HR.",
            lower("HNR", "SRPT", 0.53, x=0.97), lower("HNR", "HR", 0.20, x=0.97),
        ),
        statement(
            "At 0.97, HNR is 75 % below RR.", lower("HNR", "RR", 0.75, x=0.97), why=TURNS
        ),
        more=(LONG_TURNS, REALISED),
    ),
    _by_load(
        8, "Average response time", "mean_response", ("RR", "SRPT", "FCFS", "HR", "HNR"),
        statement("HR has the lowest average response time.", Best(label="HR")),
        statement(
            "HNR is 4 % above HR at 0.7 and 7 % at 0.97.",
            Ratio(of="HNR", to="HR", least=1.0, most=1.14, at=0.7),
            Ratio(of="HNR", to="HR", least=1.0, most=1.17, at=0.97),
        ),
        statement(
            "FCFS is at 630 % of HR at 0.97.",
            Ratio(of="FCFS", to="HR", least=4.2, most=9.5, at=0.97),
        ),
    ),
    _by_load(
        9, "Maximum response time", "max_response", ("FCFS", "LSF", "HR", "HNR", "BSD"),
        statement("FCFS has the lowest maximum response time.", Best(label="FCFS")),
        statement("At 0.97 it is 75 % below HR.", lower("FCFS", "HR", 0.75, x=0.97)),
    ),
    _by_load(
        10, "Maximum slowdown", "max_slowdown", ("FCFS", "LSF", "HR", "HNR", "BSD"),
        statement("LSF has the lowest maximum slowdown.", Best(label="LSF")),
        statement("LSF is 80 % below HNR.", lower("LSF", "HNR", 0.80, x=0.97)),
    ),
    _by_load(
        12, "ℓ2 norm of slowdowns", "norm_slowdown", ("FCFS", "LSF", "HR", "HNR", "BSD"),
        statement("BSD has the lowest ℓ2 norm of slowdowns.", Best(label="BSD")),
        statement(
            "BSD is up to 57 % below LSF and 24 % below HNR.",
            lower("BSD", "LSF", 0.57, x=0.97), lower("BSD", "HNR", 0.24, x=0.97),
        ),
    ),
    _by_load(
        13, "ℓ2 norm of response times", "norm_response", ("FCFS", "HR", "HNR", "BRT", "BSD"),
        statement("BRT has the lowest ℓ2 norm of response times.", Best(label="BRT")),
        statement(
            "BRT is up to 51 % below FCFS and 23 % below HR.",
            lower("BRT", "FCFS", 0.51, x=0.97), lower("BRT", "HR", 0.23, x=0.97),
        ),
    ),
    _by_load(
        25, "Memory", "queue", ("HR", "HNR", "BRT", "BSD", "Chain"),
        statement("Chain needs the least memory.", Best(label="Chain")),
        statement("HNR needs up to 22 % less than HR.", lower("HNR", "HR", 0.22, x=0.97)),
        statement("BSD needs up to 13 % less than HNR.", lower("BSD", "HNR", 0.13, x=0.97)),
    ),
)  # fmt: skip
