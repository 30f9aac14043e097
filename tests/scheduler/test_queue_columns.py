"""Deadlines of the live scheduler: a window's own end, and what has arrived before it."""

from dataclasses import replace

import numpy as np
from kit.networks import line, network, select
from kit.schedulers import only

from headgate.language.kinds.closing import ClosingWindows
from headgate.model.events import TrainArrived
from headgate.model.network.network import Network
from headgate.model.network.unit_table import unit_table
from headgate.model.network.units import units_of
from headgate.model.window import Input, Window
from headgate.policies import policy_named
from headgate.scheduler.scheduler import Scheduler

SECOND = 1_000_000


def closing(size_s: int, slide_s: int, offset_s: int = 0) -> ClosingWindows:
    window = Window(
        axis="time", size=size_s * SECOND, slide=slide_s * SECOND, offset=offset_s * SECOND
    )
    return ClosingWindows(inputs=(Input(stream="s", view="s", window=window),))


def windowed(*kinds: ClosingWindows | None, deadline_s: float = 100.0) -> Network:
    plain = network(*(line(f"q{n}", select(0.5), deadline_s=deadline_s) for n in range(len(kinds))))
    pairs = zip(plain.paths, kinds, strict=True)
    paths = (path if kind is None else replace(path, kind=kind) for path, kind in pairs)
    return replace(plain, paths=tuple(paths))


def scheduler(over: Network, policy: str) -> Scheduler:
    return Scheduler(over, unit_table(units_of(over)), policy_named(policy))


def arrive(chosen: Scheduler, *instants_s: float) -> None:
    times_s = np.array(instants_s)
    ones = np.ones(len(times_s), dtype=np.int64)
    chosen.hear(TrainArrived(float(times_s[-1]), 0, ones, times_s, times_s))


def test_a_window_is_due_at_its_own_end_and_only_what_arrived_before_is() -> None:
    chosen = scheduler(windowed(closing(20, 10), closing(10, 10, 4), None), "edf")
    arrive(chosen, 3.0, 9.0, 12.0, 25.0)
    assert chosen.table["deadline_at_s"].tolist() == [10.0, 4.0, 103.0]
    assert chosen.table["due"].tolist() == [2, 1, 4]
    assert chosen.table["pending"].tolist() == [4, 4, 4]


def test_edf_runs_the_query_whose_window_ends_first() -> None:
    chosen = scheduler(windowed(closing(10, 10), closing(4, 4), deadline_s=0.1), "edf")
    arrive(chosen, 5.0)
    assert only(chosen.plan(5.0)).units == (1,)


def test_the_time_that_a_query_needs_is_that_of_the_tuples_before_its_deadline() -> None:
    # 17 tuples of 0.5 s, of which one is due at 10: done by 8.5 + 0.5, the second query is in time.
    chosen = scheduler(windowed(None, closing(10, 10), deadline_s=5.0), "edf-hr")
    arrive(chosen, 8.0, *np.linspace(10.0, 12.0, 16).tolist())
    assert chosen.table["due"].tolist() == [17, 1]
    assert only(chosen.plan(8.5)).units == (1,)
