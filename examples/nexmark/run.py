"""Run Nexmark's queries over generated streams and print whether each answer is right.

.venv/bin/python examples/nexmark/run.py
.venv/bin/python examples/nexmark/run.py --events 20000 --queries q5,q9
"""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from checked import PIPELINE, PLACE, Outcome, run
from headgate.config import read_pipeline
from headgate.spark.jvm.session import local_session

SLOWEST = 8


def main() -> int:
    """Return the exit code: 0 if every query is right."""
    options = _options()
    folder = Path(options.folder).absolute()
    chosen = [name for name in options.queries.split(",") if name]
    if unknown := set(chosen) - set(read_pipeline(PIPELINE).queries):
        raise SystemExit(f"there is no {', '.join(sorted(unknown))} in {PIPELINE.name}")
    spark = local_session(folder, "local[2]", {})
    began_at_s = time.monotonic()
    try:
        checked = run(
            spark, folder, events=options.events, steps=options.steps,
            rate_per_s=options.rate, seed=options.seed, queries=chosen,
        )  # fmt: skip
    finally:
        spark.stop()
    console, took_s = Console(), time.monotonic() - began_at_s
    console.print(_table(checked.outcomes, options.events))
    for error in checked.errors:
        console.print(error, markup=False)
    right = sum(outcome.equal for outcome in checked.outcomes)
    console.print(f"{right} of {len(checked.outcomes)} queries equal, {took_s:.0f} s")
    return 0 if right == len(checked.outcomes) and not checked.errors else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Nexmark on Headgate, checked against Spark")
    parser.add_argument("--events", type=int, default=6000, help="events of all three streams")
    parser.add_argument("--rate", type=float, default=20.0, help="events per second of event time")
    parser.add_argument("--steps", type=int, default=20, help="files per stream, one by one")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--queries", default="", help="such as q5,q9; all of the pipeline if empty")
    parser.add_argument("--folder", default=PLACE, help="streams, state and results go here")
    options = parser.parse_args()
    if options.rate < SLOWEST:
        parser.error(f"--rate must be {SLOWEST} or more: auctions would outlast q9's window")
    return options


def _table(outcomes: Sequence[Outcome], events: int) -> Table:
    table = Table(title=f"Nexmark, {events:,} events")
    for name, justify in (("query", "left"), ("class", "left"), ("rows", "right")):
        table.add_column(name, justify=justify)  # type: ignore[arg-type]
    table.add_column("same as Spark in batch")
    for outcome in outcomes:
        verdict = "equal" if outcome.equal else f"{outcome.missing} missing, {outcome.wrong} wrong"
        table.add_row(outcome.query, outcome.query_class, f"{outcome.rows:,}", verdict)
    return table


if __name__ == "__main__":
    sys.exit(main())
