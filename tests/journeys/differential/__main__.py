"""Run the differential test from the command line; differences are JSON lines on stdout."""

import argparse
import json
import logging
import sys
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from pyspark.sql import SparkSession

from differential.batch import answered, check
from differential.cases import Case
from differential.columns import LAYOUTS
from differential.exclusions import listing
from differential.known_streams import KNOWN_LAYOUTS
from differential.long_run import LongRun, Settings
from differential.oracle import Oracle
from differential.session import local
from differential.trial import WAYS
from differential.world import World


def main() -> int:
    parser = argparse.ArgumentParser(prog="differential", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="seed of every random choice")
    parser.add_argument("--queries", type=int, default=200, help="how many texts to check")
    parser.add_argument("--batch", type=int, default=100, help="how many texts run in one gate")
    parser.add_argument("--first-batch", type=int, default=1, help="skip the batches before it")
    parser.add_argument("--zone", action="append", help="session time zone; by default several")
    parser.add_argument("--all-ways", action="store_true", help="both lanes, shared or not")
    parser.add_argument("--no-minimize", action="store_true", help="do not shorten failing texts")
    parser.add_argument("--state", type=Path, help="folder for progress; the same one resumes")
    parser.add_argument("--again", type=Path, help="check only the findings in this file again")
    parser.add_argument("--line", type=int, action="append", help="check only this line of --again")
    parser.add_argument("--exclusions", action="store_true", help="print the excluded functions")
    options = parser.parse_args()
    if options.exclusions:
        print(listing())
        return 0
    folder = options.state or Path(mkdtemp(prefix="differential-"))
    folder.mkdir(parents=True, exist_ok=True)
    logging.basicConfig(filename=folder / "headgate.log")  # for queries that fail, as in batch
    spark = local(folder / "spark")
    settings = Settings(
        seed=options.seed, queries=options.queries, batch=options.batch,
        zones=tuple(options.zone or ()), all_ways=options.all_ways,
        minimize=not options.no_minimize, first_batch=options.first_batch,
    )  # fmt: skip
    if options.again:
        lines = options.again.read_text().splitlines()
        chosen = options.line or range(1, len(lines) + 1)
        return recheck(spark, folder, [json.loads(lines[number - 1]) for number in chosen])
    run = LongRun(spark, folder, settings, lambda line: print(line, file=sys.stderr, flush=True))
    for finding in run.findings():
        print(json.dumps(finding), flush=True)
    print(run.summary(), file=sys.stderr)
    return 1 if run.found else 0


def recheck(spark: SparkSession, folder: Path, lines: list[dict[str, Any]]) -> int:
    """Check the queries of earlier findings again, together; print those that still differ."""
    differing = 0
    for seed, zone in {(line.get("seed", 15), line["zone"]): None for line in lines}:
        layouts = KNOWN_LAYOUTS if "group" in lines[0] else LAYOUTS
        world = World(spark, folder / f"{seed}-{zone.replace('/', '-')}", seed, zone, layouts)
        oracle = Oracle(world)
        cases = {
            line["sql"]: Case.from_data(line["case"])
            for line in lines
            if (line.get("seed", 15), line["zone"]) == (seed, zone)
        }
        candidates = (answered(oracle, f"q{n}", case) for n, case in enumerate(cases.values()))
        questions = [question for question in candidates if question is not None]
        findings, tally = check(world, questions, WAYS, folder / "gates")
        print(tally, file=sys.stderr)
        for finding in findings:
            print(json.dumps({"seed": seed, **finding.line()}), flush=True)
        differing += len(findings)
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
