"""The cells of `make bench-amos`: a workload, a library, and what is asked for in each phase."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headgate.model.network.network import Path
from headgate.runtime.what_if.workload import Workload, workload
from headgate.workloads.load import work_s
from headgate.workloads.on_off import pareto_on_off

PLANS = "rr-box+fcfs+mtiq+chain"
LIBRARY = "rr-box+fcfs+mtiq+chain+hr+hnr+bsd"

OBJECTIVES: Mapping[str, Mapping[str, float]] = {
    "delay": {"mean_response_s": 1.0},
    "queue": {"pending": 1.0},
    "70 % delay, 30 % rate": {"mean_response_s": 0.7, "output_per_s": 0.3},
    "70 % rate, 30 % delay": {"mean_response_s": 0.3, "output_per_s": 0.7},
    "delay, rate, queue": {"mean_response_s": 1 / 3, "output_per_s": 1 / 3, "pending": 1 / 3},
    "mean slowdown": {"mean_slowdown": 1.0},
    "ℓ2 of slowdown": {"norm_slowdown": 1.0},
    "memory": {"pending_bytes": 1.0},
    "a day": {"mean_slowdown": 0.5, "max_slowdown": 0.3, "pending_bytes": 0.2},
}
MORE_IS_BETTER = ("output_per_s",)

LOADS = {"0.95": {"utilisation": 0.95, "swing": 0.0}, "±75 %": {"utilisation": 0.8, "swing": 0.75}}
DAY_S, DAY_LOADS, DAY_PER_S, DAY_QUERIES = 600.0, (0.5, 1.3, 0.7), 20.0, 100


@dataclass(frozen=True)
class Cell:
    """A row of the table.

    Args:
        phases: an objective per phase of a run; all phases last equally long.
        oracle: whether a greedy oracle runs beside the single policies.
    """

    name: str
    workload: str
    options: Mapping[str, Any]
    library: str
    phases: tuple[str, ...]
    bar: float
    oracle: bool = False

    def make(self, seed: int) -> Workload:
        if self.workload == "day":
            return day(seed)
        return workload(self.workload, seed=seed, **self.options)

    def specification(self, phase: int) -> str:
        rows = OBJECTIVES[self.phases[phase]]
        return ",".join(
            f"{metric}:{'maximize' if metric in MORE_IS_BETTER else 'minimize'}:{weight!r}"
            for metric, weight in rows.items()
        )


def cells(*, quick: bool) -> Iterator[Cell]:
    """Yield all cells, or a tenth of the work of each."""
    plans = {"tuples": 4000} if quick else {}
    sharaf = {"queries": 100, "tuples": 4000} if quick else {"queries": 500}
    for plan in (1, 2):
        for load, options in LOADS.items():
            where = {"plan": plan, **options, **plans}
            for objective in list(OBJECTIVES)[:5]:
                name = f"plan {plan}, load {load}: {objective}"
                yield Cell(name, "amos", where, PLANS, (objective,), 1.03)
            for phases in (("delay", "queue"), ("delay", "queue") * 2):
                name = f"plan {plan}, load {load}: {', then '.join(phases)}"
                yield Cell(name, "amos", where, PLANS, phases, 0.95)
    for objective in ("mean slowdown", "ℓ2 of slowdown", "memory"):
        where = {"utilisation": 0.95, **sharaf}
        yield Cell(f"Sharaf: {objective}", "sharaf", where, LIBRARY, (objective,), 1.05)
    yield Cell("a day in ten minutes", "day", {}, LIBRARY, ("a day",), 0.95, oracle=True)


def day(seed: int) -> Workload:
    """Return Sharaf's queries under a load of 0.5, 1.3 and 0.7, with bursts."""
    tuples = int(sum(DAY_LOADS) / len(DAY_LOADS) * DAY_S * DAY_PER_S)
    even_s = pareto_on_off(rate_per_s=1.0, tuples=tuples, seed=seed)
    # The work of the stream, from 0 to 1, is warped so that each third of the day has its load.
    done = even_s / even_s[-1] * sum(DAY_LOADS)
    marks = np.concatenate([[0.0], np.cumsum(DAY_LOADS)])
    times_s = np.interp(done, marks, np.linspace(0.0, DAY_S, len(marks)))
    before = workload("sharaf", seed=seed, queries=DAY_QUERIES, tuples=tuples, utilisation=1.0)
    work = work_s(before.network, {"packets": DAY_PER_S})["packets"]
    paths = [_scaled(path, 1.0 / (work * DAY_PER_S)) for path in before.network.paths]
    network = replace(before.network, paths=tuple(paths))
    return replace(before, network=network, arrivals={"packets": times_s})


def _scaled(path: Path, factor: float) -> Path:
    boxes = (replace(box, cost_s=box.cost_s * factor) for box in path.operators)
    return replace(path, operators=tuple(boxes))
