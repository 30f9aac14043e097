"""The closed loop on Spark: what policies deliver at the same arrivals, and what the shedder takes.

Every run is a process of its own. First the capacity is calibrated: how many tuples per second a
worker can process. Then the policies of a row run in turn, several times, at the same multiple of
it, over the same arrivals. Nothing is shed but in the row about shedding. A row shows the median of
the ratios, and their range.

    python bench/loop.py --results bench/results/loop.json
    python bench/loop.py --runs 1 --seconds 10 --only union

The exit code is 1 if a bar is missed.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from bars import Measurement, table
from loop_run import Run
from machine import cpu_clock, facts

RUNS, SECONDS = 3, 25.0
FLOOD_PER_S = 20_000.0
"""More than any worker can process, for the calibration."""

Figures = dict[str, Any]


@dataclass(frozen=True)
class Row:
    """A comparison of two policies by one figure of their reports.

    Args:
        load: the rate of arrivals, as a multiple of the capacity.
        figure: returns the figure; more is better if `more` is true.
    """

    what: str
    case: str
    better: str
    other: str
    load: float
    figure: Callable[[Figures], float]
    more: bool = False

    def ratio(self, better: Figures, other: Figures) -> float:
        """Return how many times better the first policy is."""
        values = self.figure(better), self.figure(other)
        above, below = values if self.more else values[::-1]
        return above / below


def qos(report: Figures) -> float:
    return float(report["total"]["qos"])


def staleness(report: Figures) -> float:
    return float(report["total"]["staleness_expected"])


def tardiness(report: Figures) -> float:
    return float(report["total"]["tardiness_s"])


ROWS = (
    Row("QoS", "selections", "qos", "rr", 1.5, qos, more=True),
    Row("staleness", "selections", "fas", "hr", 1.2, staleness),
    Row("tardiness", "windows", "edf-hr", "hr", 0.9, tardiness),
    Row("tardiness", "windows", "edf-hr", "edf", 1.2, tardiness),
)


class Bench:
    """The runs of a benchmark, and what they need: a folder, the time of a run, how many.

    Args:
        talk: tells what is done.
    """

    def __init__(
        self, folder: Path, seconds: float, runs: int, talk: Callable[[str], None]
    ) -> None:
        self._folder, self._seconds, self._runs, self._talk = folder, seconds, runs, talk
        self._count = 0
        self._capacities: dict[str, float] = {}

    def capacity_per_s(self, case: str) -> float:
        """Return how many tuples per second a worker can process."""
        if case not in self._capacities:
            report = self.run(case, "rr", FLOOD_PER_S, "calibration")
            tuples = sum(query["tuples_in"] for query in report["queries"])
            seconds = report["seconds"] * report["utilisation"]
            self._capacities[case] = tuples / len(report["queries"]) / seconds
        return self._capacities[case]

    def run(self, case: str, policy: str, rate_per_s: float, what: str) -> Figures:
        """Run a case in a process of its own, and return its report."""
        self._count += 1
        self._talk(f"{what}: {case} under {policy}, {rate_per_s:.0f} tuples/s")
        run = Run(
            case=case, policy=policy, rate_per_s=rate_per_s, seconds=self._seconds,
            folder=str(self._folder / str(self._count)),
        )  # fmt: skip
        script = Path(__file__).with_name("loop_run.py")
        command = [sys.executable, str(script), run.text]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        report: Figures = json.loads(done.stdout.splitlines()[-1])
        return report

    def compared(self, row: Row) -> Measurement:
        """Run the two policies of a row in turn, and return the median of their ratios."""
        rate_per_s = row.load * self.capacity_per_s(row.case)
        sides: dict[str, list[float]] = {row.better: [], row.other: []}
        ratios = []
        for number in range(self._runs):
            order = (row.better, row.other) if number % 2 == 0 else (row.other, row.better)
            reports = {policy: self.run(row.case, policy, rate_per_s, row.what) for policy in order}
            for policy, report in reports.items():
                sides[policy].append(row.figure(report))
            ratios.append(row.ratio(reports[row.better], reports[row.other]))
        more = "more" if row.more else "less"
        return Measurement(
            what=f"{row.what} at {row.load:g} times the capacity: {row.better} {more} than"
            f" {row.other}",
            measured=median(ratios), unit="times", bar=1.0,
            figures={"range": [min(ratios), max(ratios)], "rate_per_s": rate_per_s, "of": sides},
        )  # fmt: skip

    def shed(self) -> Iterator[Measurement]:
        """Yield what becomes of a critical class, and of three queries of rising worth, when twice
        as much arrives as can be processed.
        """
        rate_per_s = 2 * self.capacity_per_s("shedding")
        reports = [self.run("shedding", "cqc", rate_per_s, "shedding") for _ in range(self._runs)]
        means_s = [report["classes"][0]["response_s"]["mean"] for report in reports]
        yield Measurement(
            what="shedding at 2 times the capacity: mean response of class H, whose target is 1 s",
            measured=median(means_s), unit="s", bar=1.0, at_most=True,
            figures={"range": [min(means_s), max(means_s)], "rate_per_s": rate_per_s},
        )  # fmt: skip
        fractions = [report["fractions"] for report in reports]
        in_order = [
            share[0] == 0 and share[1] >= share[2] >= share[3] and share[1] > 0
            for share in fractions
        ]
        yield Measurement(
            what="shedding at 2 times the capacity: runs that took from the least worth first",
            measured=sum(in_order) / len(in_order), unit="of all runs", bar=1.0,
            figures={"fractions": fractions, "queries": "critical, worth 1, 10, 100"},
        )  # fmt: skip

    def united(self) -> Measurement:
        """Return the mean response of a union of a busy and a silent stream."""
        reports = [self.run("union", "fcfs", 200.0, "union") for _ in range(self._runs)]
        means_s = [report["queries"][0]["response_s"]["mean"] for report in reports]
        idle_s = [report["queries"][0].get("idle_wait_s", 0.0) for report in reports]
        return Measurement(
            what="union of a busy and a silent stream: mean response (quiet_s is 10 s)",
            measured=median(means_s), unit="s", bar=1.0, at_most=True,
            figures={"range": [min(means_s), max(means_s)], "idle_wait_s": idle_s},
        )  # fmt: skip

    def measurements(self, only: str) -> Iterator[Measurement]:
        """Yield all rows, or those whose case has a name."""
        for row in ROWS:
            if only in ("", row.case):
                yield self.compared(row)
        if only in ("", "shedding"):
            yield from self.shed()
        if only in ("", "union"):
            yield self.united()


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Compare what policies deliver on Spark; exit with 1 if a bar is missed.",
        epilog="example: python bench/loop.py --runs 1 --seconds 10 --only union",
    )
    parser.add_argument("--runs", type=int, default=RUNS, help="runs of each policy and row")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of each run")
    parser.add_argument("--only", default="", help="selections, windows, shedding or union")
    parser.add_argument("--results", type=Path, metavar="FILE", help="write the results here")
    arguments = parser.parse_args()

    def talk(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    before = cpu_clock(os.getpgrp(), time.perf_counter())
    with TemporaryDirectory() as folder:
        bench = Bench(Path(folder), arguments.seconds, arguments.runs, talk)
        rows = list(bench.measurements(arguments.only))
    print(table(rows))
    cores = cpu_clock(os.getpgrp(), time.perf_counter()).since(before)
    print(f"others used {cores['other_cores']:.2f} cores meanwhile")
    if arguments.results is not None:
        answer = {
            "machine": facts(), "runs": arguments.runs, "seconds": arguments.seconds,
            "cores": cores, "rows": [row.to_dict() for row in rows],
        }  # fmt: skip
        arguments.results.parent.mkdir(parents=True, exist_ok=True)
        arguments.results.write_text(json.dumps(answer, indent=1, ensure_ascii=False) + "\n")
    missed = [row for row in rows if row.verdict == "miss"]
    print(f"{len(missed)} of {len(rows)} bars missed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
