"""Compare `amos` under every learner with the best single policy of its library.

A run's score is Σ w · metric / (best value of that metric by a single policy in that seed), output
rates inverted; after a change of the specification each phase is scored by its own metrics. The
ratio is the score of `amos` over the lowest score of a single policy. A bar is reached if the mean
ratio over the seeds is not above it. The exit code is 1 if the learner that looks ahead misses one.

    python bench/amos.py --results bench/results/amos.json
    python bench/amos.py --quick --only "plan 2"
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from amos_cells import MORE_IS_BETTER, OBJECTIVES, Cell, cells
from headgate.policies import policy_named
from headgate.runtime.what_if.simulate import simulation_of
from headgate.runtime.what_if.simulation_options import fresh
from headgate.runtime.what_if.workload import Workload
from headgate.simulation.loop.changes import Replacement
from headgate.simulation.loop.look_ahead import LookAhead
from headgate.simulation.loop.run import Simulation
from machine import cpu_clock, facts

JUDGED = "look-ahead"
OTHERS = ("relative", "roulette", "epsilon-greedy", "ucb", "exp3", "thompson")
ORACLE = "oracle"
FIRST_SEED = 1
"""The constants of the learners were chosen on seeds from 100 on, and are judged on others."""

Metrics = list[dict[str, float]]


def main() -> int:
    arguments = _arguments()
    seeds = range(FIRST_SEED, FIRST_SEED + arguments.seeds)
    learners = [JUDGED, *(OTHERS if arguments.learners is None else arguments.learners)]
    before, rows = cpu_clock(os.getpgrp(), time.time()), []
    for cell in cells(quick=arguments.quick):
        if not any(part in cell.name for part in arguments.only or [""]):
            continue
        ratios: dict[str, list[float]] = {}
        for seed in seeds:
            for learner, ratio in ratios_of(cell, seed, learners).items():
                ratios.setdefault(learner, []).append(ratio)
        rows.append(row_of(cell, ratios))
        print(line_of(rows[-1]), flush=True)
        if arguments.results is not None:
            conditions = cpu_clock(os.getpgrp(), time.time()).since(before)
            _write(arguments.results, arguments, rows, {**facts(), "conditions": conditions})
    missed = [row["cell"] for row in rows if row["verdict"] == "miss"]
    print(f"{len(rows) - len(missed)} of {len(rows)} bars reached, {len(list(seeds))} seeds each")
    return 1 if missed else 0


def ratios_of(cell: Cell, seed: int, learners: Sequence[str]) -> dict[str, float]:
    """Return the score of `amos` under each learner over the lowest score of a single policy."""
    workload = cell.make(seed)
    singles = [run(cell, workload, policy_named(name)) for name in cell.library.split("+")]
    best = [_best([metrics[phase] for metrics in singles]) for phase in range(len(cell.phases))]
    lowest = min(score(cell, metrics, best) for metrics in singles)
    ratios = {}
    for learner in [*learners, *([ORACLE] if cell.oracle else [])]:
        policy = policy_named(
            "amos",
            policies=cell.library.replace("+", ","),
            specification=cell.specification(0),
            learning=JUDGED if learner == ORACLE else learner,
            seed=seed,
        )
        metrics = run(cell, workload, policy, foreknows=learner == ORACLE)
        ratios[learner] = score(cell, metrics, best) / lowest
    return ratios


def run(cell: Cell, workload: Workload, policy: Any, *, foreknows: bool = False) -> Metrics:
    """Return the metrics of each phase of a run."""
    count, ends_s = len(cell.phases), workload.ends_at_s
    begins_s = [ends_s * phase / count for phase in range(count)]
    changes = []
    if policy.name == "amos":
        changes = [
            Replacement(begins_s[phase], specification=cell.specification(phase))
            for phase in range(1, count)
        ]
    simulation = simulation_of(
        workload.network, workload.arrivals, policy, keep=True, replacements=changes,
        **fresh(workload.options),
    )  # fmt: skip
    if foreknows:
        simulation.ahead = LookAhead(simulation, foreknows=True)
    areas = [0.0]
    for end_s in begins_s[1:]:
        simulation.run_until(end_s)
        areas.append(float(simulation.world.clock["pending_area"][0]))
    simulation.run()
    areas.append(float(simulation.world.clock["pending_area"][0]))
    return _phases(simulation, [*begins_s, simulation.now_s], areas)


def _phases(simulation: Simulation, marks_s: Sequence[float], areas: Sequence[float]) -> Metrics:
    world = simulation.world
    rows = world.kept[: 3 * int(world.clock["kept"][0])].reshape(-1, 3)
    all_s = rows[:, 2] - rows[:, 1]
    slowdowns = all_s / world.results["ideal_s"][rows[:, 0].astype(int)]
    phases = []
    for phase, (begin_s, end_s) in enumerate(pairwise(marks_s)):
        chosen = (rows[:, 2] > begin_s) & (rows[:, 2] <= end_s)
        slowed, span_s = slowdowns[chosen], end_s - begin_s
        phases.append(
            {
                "mean_response_s": float(all_s[chosen].mean()),
                "output_per_s": int(chosen.sum()) / span_s,
                "pending": (areas[phase + 1] - areas[phase]) / span_s,
                "mean_slowdown": float(slowed.mean()),
                "max_slowdown": float(slowed.max()),
                "norm_slowdown": float(np.sqrt(slowed @ slowed)),
                "pending_bytes": float(world.clock["bytes_area"][0]) / marks_s[-1],
            }
        )
    return phases


def score(cell: Cell, metrics: Metrics, best: Metrics) -> float:
    """Return the score of a run, the mean over its phases; lower is better."""
    total = 0.0
    for phase, objective in enumerate(cell.phases):
        for metric, weight in OBJECTIVES[objective].items():
            ratio = metrics[phase][metric] / best[phase][metric]
            total += weight * (1 / ratio if metric in MORE_IS_BETTER else ratio)
    return total / len(cell.phases)


def _best(metrics: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {
        metric: (max if metric in MORE_IS_BETTER else min)(row[metric] for row in metrics)
        for metric in metrics[0]
    }


def row_of(cell: Cell, ratios: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """Return a cell with the ratios of all learners, and whether the bar is reached.

    Where an oracle runs, it is enough to be within 3 % of the better of the oracle and the best
    single policy.
    """
    mean, bar = float(np.mean(ratios[JUDGED])), cell.bar
    if cell.oracle:
        bar = max(bar, 1.03 * min(1.0, float(np.mean(ratios[ORACLE]))))
    return {
        "cell": cell.name,
        "bar": bar,
        "verdict": "pass" if mean <= bar else "miss",
        "ratios": {
            learner: {"mean": float(np.mean(values)), "low": min(values), "high": max(values)}
            for learner, values in ratios.items()
        },
    }


def line_of(row: Mapping[str, Any]) -> str:
    parts = [
        f"{learner} {values['mean']:.3f} ({values['low']:.3f}-{values['high']:.3f})"
        for learner, values in row["ratios"].items()
    ]
    verdict = row["verdict"].upper() if row["verdict"] == "miss" else row["verdict"]
    return f"{row['cell']:50} bar {row['bar']:.2f} {verdict}  {'  '.join(parts)}"


def _write(
    file: Path, arguments: argparse.Namespace, rows: Sequence[Any], machine: Mapping[str, Any]
) -> None:
    options = {"seeds": arguments.seeds, "first_seed": FIRST_SEED, "quick": arguments.quick}
    results = {"options": options, "machine": machine, "cells": rows}
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(results, indent=1, default=str) + "\n")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="short runs")
    parser.add_argument("--seeds", type=int, default=None, help="6, or 2 with --quick")
    parser.add_argument("--only", nargs="+", help="parts of the names of cells")
    parser.add_argument("--learners", nargs="*", help=f"beside {JUDGED}; default: all")
    parser.add_argument("--results", type=Path, help="JSON file to write")
    arguments = parser.parse_args()
    if arguments.seeds is None:
        arguments.seeds = 2 if arguments.quick else 6
    return arguments


if __name__ == "__main__":
    sys.exit(main())
