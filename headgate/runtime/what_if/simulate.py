"""Simulation of a network in virtual time."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from headgate.errors import ConfigRefused, UnknownName
from headgate.metrics.report import Report
from headgate.metrics.run import RunMetrics
from headgate.model.arrays import Floats
from headgate.model.network.network import Network, Path
from headgate.model.network.operator import Operator
from headgate.model.network.unit_table import unit_table
from headgate.model.network.units import Level, SharedPriority, units_of
from headgate.model.query import QueryStatistics
from headgate.policies import Policy, policies, policy_named
from headgate.policies.registry import refuse_inside
from headgate.runtime.listeners import Listener, Observed
from headgate.scheduler.feeds import feeds_of, follow
from headgate.scheduler.loop import run
from headgate.scheduler.scheduler import Scheduler
from headgate.scheduler.shedder import Shedder
from headgate.simulation.build.input_checks import check_figures
from headgate.simulation.loop.changes import Replacement, Switch
from headgate.simulation.loop.engine import SimulationEngine
from headgate.simulation.loop.run import USUAL_TRAIN, Simulation
from headgate.simulation.loop.run_report import report_of
from headgate.simulation.world.setting import Setting

CLOCK_S = 1e-6
"""Resolution of Spark's timestamps; a rate is not measured over a shorter time."""


def simulate(
    network: Network,
    arrivals: Mapping[str, Floats],
    *,
    policy: str | Policy = "hr",
    level: Level = "query",
    shared_priority: SharedPriority = "pdt",
    statistics: Mapping[str, QueryStatistics] | None = None,
    overhead_s: float = 0.0,
    seed: int = 0,
    workers: int = 1,
    train_tuples: int | None = None,
    usual_train: int = USUAL_TRAIN,
    most_fused: int = 1,
    trigger_s: Mapping[str, float] | None = None,
    together: bool = False,
    fates: Mapping[str, Sequence[int]] | None = None,
    switches: Sequence[Switch] = (),
    replacements: Sequence[Replacement] = (),
    shedder: Shedder | None = None,
    progress: Callable[[float], None] = lambda now_s: None,
    listeners: Sequence[Listener] = (),
    **options: Any,
) -> Report:
    """Run a network in virtual time and report on every query and class.

    Args:
        arrivals: arrival times by stream, in seconds.
        level: whether units are whole queries or single operators (Sharaf §3.3).
        shared_priority: how shared operators are grouped and ranked (Sharaf §3.6).
        overhead_s: seconds that every call costs once, if statistics do not say.
        train_tuples: most tuples that a call takes; by default as many as in the policy's paper.
        trigger_s: by stream, how often its source is polled; without it a tuple is seen at once.
        together: whether results leave at the end of a call, as from a Spark job.
        switches: queries that come and go, and when.
        shedder: drops tuples in overload.
        options: see `headgate.simulation.world.setting.Setting`.

    Runs that fuse calls, poll sources at intervals or have listeners go through the same loop as a
    run on Spark; all others go through the compiled kernel.
    """
    known_statistics = dict(statistics or {})
    network = replace(
        network, paths=tuple(_as_one_box(path, known_statistics) for path in network.paths)
    )
    chosen = policy_named(policy) if isinstance(policy, str) else policy
    entry = policies().get(chosen.name)
    if entry is not None and level not in entry.levels:
        expected = f"{' or '.join(entry.levels)} for policy '{chosen.name}'"
        raise ConfigRefused(path="simulation", key="level", value=level, expected=expected)
    through_loop = bool(most_fused > 1 or trigger_s or together or listeners)
    refuse_inside(chosen, level=level, engine="spark" if through_loop else "simulation")
    if through_loop:
        changes = {"switches": switches, "replacements": replacements, "shedder": shedder}
        for key, value in {**changes, **options}.items():
            if value:
                expected = "left out with most_fused, trigger_s, together or listeners"
                raise ConfigRefused(path="simulation", key=key, value=value, expected=expected)
        if level != "query" or any(path.output is not None for path in network.paths):
            expected = (
                "query, and every query a line of boxes, with most_fused, trigger_s, together or"
                " listeners"
            )
            raise ConfigRefused(path="simulation", key="level", value=level, expected=expected)
        Setting(workers=workers)  # refuses what the compiled kernel refuses
        units = units_of(network)
        check_figures(units)
        table = unit_table(units, known_statistics, overhead_s)
        follow(table, feeds_of(units))
        fixed = usual_train if chosen.tuples_a_step is None else chosen.tuples_a_step
        tuples = fixed if train_tuples is None else train_tuples
        engine = SimulationEngine(
            network, table, arrivals, seed=seed, workers=workers, trigger_s=trigger_s,
            together=together, fates=fates, progress=progress,
        )  # fmt: skip
        scheduler = Scheduler(
            network, table, chosen, workers=workers, train_tuples=tuples, most_fused=most_fused
        )
        metrics = RunMetrics(network, table)
        run(scheduler, Observed(engine, [metrics.hear, *listeners]))
        return Report.of(chosen.name, metrics)
    simulation = simulation_of(
        network, arrivals, chosen, level=level, shared_priority=shared_priority,
        statistics=known_statistics, overhead_s=overhead_s, seed=seed, workers=workers,
        train_tuples=train_tuples, usual_train=usual_train, fates=fates or {}, switches=switches,
        replacements=replacements, shedder=shedder, **options,
    )  # fmt: skip
    simulation.run(progress)
    return report_of(chosen.name, simulation.world, simulation.units)


def simulation_of(
    network: Network,
    arrivals: Mapping[str, Floats],
    policy: Policy,
    *,
    level: Level = "query",
    shared_priority: SharedPriority = "pdt",
    statistics: Mapping[str, QueryStatistics] | None = None,
    overhead_s: float = 0.0,
    train_tuples: int | None = None,
    usual_train: int = USUAL_TRAIN,
    switches: Sequence[Switch] = (),
    replacements: Sequence[Replacement] = (),
    shedder: Shedder | None = None,
    **options: Any,
) -> Simulation:
    """Return a simulation before its first instant; see `simulate`."""
    times = {name: np.asarray(times_s, dtype=np.float64) for name, times_s in arrivals.items()}
    rates = {
        network.stream_number(name, where="arrivals"): (
            len(times_s) / max(float(times_s[-1]), CLOCK_S)
        )
        for name, times_s in times.items()
        if len(times_s) and times_s[-1] > 0
    }
    units = units_of(
        network, level, shared_priority=shared_priority, value=policy.value, rates_per_s=rates,
        rebuilds_trees=bool(options.get("learns")),
    )  # fmt: skip
    table = unit_table(units, statistics, overhead_s)
    options.setdefault("foresight", policy.foresees)
    if train_tuples is not None:
        options["train_tuples"] = train_tuples
    names = {field.name for field in fields(Setting)}
    for key in options:
        if key not in names:
            raise UnknownName(kind="option", name=key, known=names, where="simulation")
    return Simulation(
        units, table, policy, times, Setting(**options), train_tuples=train_tuples,
        usual_train=usual_train, switches=switches, replacements=replacements, shedder=shedder,
    )  # fmt: skip


def _as_one_box(path: Path, statistics: Mapping[str, QueryStatistics]) -> Path:
    """Return a path as one box with the statistics of its query, or unchanged if it has none.

    Such a box passes a tuple or does not, so a query with a selectivity above 1 passes all tuples.
    """
    figures = statistics.get(path.query.name)
    if figures is None:
        return path
    passes = min(1.0, figures.selectivity)
    box = Operator(kind="select", cost_s=figures.cost_s, selectivity=passes)
    return replace(path, operators=(box,))
