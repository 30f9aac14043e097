"""The cost of a decision of the live scheduler as queries are added, without Spark.

The scheduler is the one of a run on Spark, with its statistics and its queues of trains; only the
calls are not run. Ten queries read each stream. In every turn a train arrives at a random stream,
the call under way ends, and the scheduler decides what runs next. The time of that decision is
measured, and it includes what the selection must hear of the rows that have changed.

    python bench/decisions.py --results bench/results/decisions.json
    python bench/decisions.py --quick

The exit code is 1 if a decision costs more than twice as much among ten times as many queries.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

import growth
from bars import Measurement, table
from headgate.model.events import StepFinished, TrainArrived
from headgate.model.network.network import Network
from headgate.model.network.unit_table import UnitTable, unit_table
from headgate.model.network.units import units_of
from headgate.model.query import QueryStatistics
from headgate.policies import Policy, policy_named
from headgate.scheduler.scheduler import Scheduler
from headgate.scheduler.statistics import Statistics
from machine import facts

FULL = (100, 1_000, 10_000, 100_000)
QUICK = (100, 1_000, 10_000)
READERS = 10
TURNS, WARM_UP = 10_000, 2_000
CALL_S = 0.002


def contenders() -> dict[str, tuple[Policy, bool]]:
    """Return the policies by name, and whether a bar limits their growth."""
    return {
        "qos-bucketed": (policy_named("qos-bucketed"), True),
        "bsd, log clusters": (policy_named("bsd", search="log", clustered=True), True),
        "bsd, Fagin": (policy_named("bsd", search="fagin"), False),
        "qos, exact": (policy_named("qos"), False),
    }


def network(count: int) -> Network:
    """Return the queries of `growth`, ten of them over each stream."""
    apart = growth.network(count)
    streams = apart.streams[: max(1, count // READERS)]
    paths = tuple(
        type(path)(
            query=path.query, stream=streams[number % len(streams)].name, operators=path.operators
        )
        for number, path in enumerate(apart.paths)
    )
    return Network(streams, apart.classes, paths)


def measurements(sizes: Sequence[int], turns: int) -> Iterator[Measurement]:
    """Yield the microseconds of a decision by policy and number of queries, then their growth."""
    costs_s: dict[str, list[float]] = {}
    for count in sizes:
        queries = network(count)
        rows = unit_table(units_of(queries), _figures(queries))
        for name, (policy, _) in contenders().items():
            print(f"{name}, {count} queries", file=sys.stderr, flush=True)
            decision_s, turn_s = a_decision_s(queries, rows.copy(), policy, turns)
            costs_s.setdefault(name, []).append(decision_s)
            yield Measurement(
                what=f"{name}: a decision among {count:,} queries", measured=decision_s * 1e6,
                unit="µs", figures={"queries": count, "turns": turns, "turn_us": turn_s * 1e6},
            )  # fmt: skip
    for name, (_, limited) in contenders().items():
        for place, count in enumerate(sizes[1:], start=1):
            yield Measurement(
                what=f"{name}: growth from {sizes[place - 1]:,} to {count:,} queries",
                measured=costs_s[name][place] / costs_s[name][place - 1], unit="times",
                bar=growth.TWICE if limited else None, at_most=True,
            )  # fmt: skip


def _figures(queries: Network) -> dict[str, QueryStatistics]:
    """Return the statistics of all queries, as if a run had measured them."""
    boxes = {path.query.name: path.operators[0] for path in queries.paths}
    return {
        name: QueryStatistics(
            cost_s=box.cost_s or 0.0, selectivity=box.selectivity or 0.0, overhead_s=CALL_S
        )
        for name, box in boxes.items()
    }


def a_decision_s(
    queries: Network, rows: UnitTable, policy: Policy, turns: int
) -> tuple[float, float]:
    """Return the seconds of a decision, and those of a whole turn with its events."""
    scheduler = Scheduler(queries, rows, policy, most_fused=1, statistics=Statistics(rows))
    random, count = np.random.default_rng(growth.SEED), len(queries.streams)
    for stream in range(count):
        _arrive(scheduler, stream, 1.0 - float(random.random()))
    drawn, calls = random.integers(0, count, WARM_UP + turns).tolist(), scheduler.plan(1.0)
    decided_s, began_s, nothing = 0.0, 0.0, (np.zeros(0),)
    for turn, stream in enumerate(drawn):
        if turn == WARM_UP:
            decided_s, began_s = 0.0, time.thread_time()
        now_s = 1.0 + turn * CALL_S
        _arrive(scheduler, stream, now_s)
        for call in calls:
            scheduler.hear(StepFinished(now_s, call, CALL_S, (call.tuples,), nothing))
        before_s = time.thread_time()
        calls = scheduler.plan(now_s)
        decided_s += time.thread_time() - before_s
        assert len(calls) == 1, "a query always waits"
    return decided_s / turns, (time.thread_time() - began_s) / turns


def _arrive(scheduler: Scheduler, stream: int, at_s: float) -> None:
    times_s = np.array([at_s])
    scheduler.hear(TrainArrived(at_s, stream, np.array([1]), times_s, times_s))


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Measure decisions of the live scheduler; exit with 1 if a bar is missed.",
        epilog="example: python bench/decisions.py --quick",
    )
    parser.add_argument("--quick", action="store_true", help="up to 10 000 queries, fewer turns")
    parser.add_argument("--results", type=Path, metavar="FILE", help="write the results here")
    arguments = parser.parse_args()
    sizes, turns = (QUICK, 4_000) if arguments.quick else (FULL, TURNS)
    rows = list(measurements(sizes, turns))
    print(table(rows))
    if arguments.results is not None:
        answer = {"machine": facts(), "quick": arguments.quick}
        answer["rows"] = [row.to_dict() for row in rows]
        arguments.results.parent.mkdir(parents=True, exist_ok=True)
        arguments.results.write_text(json.dumps(answer, indent=1, ensure_ascii=False) + "\n")
    missed = [row for row in rows if row.verdict == "miss"]
    print(f"{len(missed)} of {sum(row.bar is not None for row in rows)} bars missed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
