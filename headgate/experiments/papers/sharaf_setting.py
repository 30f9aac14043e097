"""What the figures of Sharaf's chapter 3 share: policies, loads, notes (Sharaf §3.7)."""

from headgate.experiments.experiment import Axis, Curve
from headgate.experiments.statement import Claim, Statement

QUICK = {"queries": 100, "tuples": 5_000}
QUICK_JOINS = {"queries": 50, "tuples": 1_000}
LOAD = Axis(
    name="utilization",
    values=(0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.97, 0.99),
    quick=(0.5, 0.7, 0.9, 0.95, 0.97),
    sets="utilisation",
)
POLICIES = {
    "RR": "rr", "SRPT": "srpt", "FCFS": "fcfs", "LSF": "lsf", "HR": "hr", "HNR": "hnr",
    "BRT": "brt", "BSD": "bsd", "Chain": "chain",
}  # fmt: skip
NOTE = (
    "500 queries over one bursty stream (Pareto on/off arrivals; LBL-PKT-4 cannot be had). RR takes"
    " one tuple a turn; all queries read the same stream, so it decides as FCFS does."
)
TRACE = ("bc-paug89-prefix100k.parquet",)
ARRIVALS = (
    "How much one policy gains over another depends on how bursty the arrivals are, and those of"
    " LBL-PKT-4 cannot be had."
)


def curves(*labels: str) -> tuple[Curve, ...]:
    return tuple(Curve(label=label, policy=POLICIES[label]) for label in labels)


def statement(text: str, *claims: Claim, why: str = ARRIVALS) -> Statement:
    return Statement(text=text, claims=claims, why=why)
