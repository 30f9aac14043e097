"""Sharaf's figures over time: 17 to 20 (§3.8.1.11)."""

from headgate.experiments.experiment import Axis, Experiment, Panel
from headgate.experiments.papers.sharaf_setting import NOTE, curves, statement
from headgate.experiments.statement import MeanOverTime

OVER_TIME = {"queries": 500, "tuples": 20_000, "utilisation": 0.95}


def _over_time(figure: int, title: str, measure: str, best: str, *others: str) -> Experiment:
    return Experiment(
        id=f"sharaf-{figure:02}",
        paper="sharaf",
        figure=str(figure),
        title=f"{title} over time",
        note=f"{NOTE} Utilization 0.95. The thesis shows an interval in the middle of an hour's "
        "trace; samples end here while tuples still arrive.",
        panels=(
            Panel(
                title=f"{title} over time",
                kind="time",
                testbed="sharaf",
                options=OVER_TIME,
                quick={"queries": 100},
                x=Axis(name="time", unit="s", values=(0,)),
                curves=curves("FCFS", best, *others),
                measure=measure,
                every_s=1.0,
                until_s=45.0,
            ),
        ),
        statements=(
            statement(
                f"{best} is best over time.",
                MeanOverTime(labels=(best,)),
                why="The mean over seconds weighs a second with few results as much as one with "
                "many, and a policy that holds back costly results until a burst is over has "
                "seconds with few, late results. Per result, see the figures by load.",
            ),
        ),
    )


OVER_TIME_FIGURES = (
    _over_time(17, "Response time", "mean_response_s", "HR", "HNR", "BRT"),
    _over_time(18, "Slowdown", "mean_slowdown", "HNR", "HR", "BSD"),
    _over_time(19, "ℓ2 norm of response times", "norm_response_s", "BRT", "HR", "BSD"),
    _over_time(20, "ℓ2 norm of slowdowns", "norm_slowdown", "BSD", "LSF", "HNR"),
)
