"""Run the differential test from the command line; differences are JSON lines on stdout."""

import argparse
import json
import sys
from pathlib import Path
from tempfile import mkdtemp

from differential.exclusions import listing
from differential.long_run import LongRun, Settings
from headgate.spark.room import local_session


def main() -> int:
    parser = argparse.ArgumentParser(prog="differential", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="seed of every random choice")
    parser.add_argument("--queries", type=int, default=200, help="how many texts to check")
    parser.add_argument("--batch", type=int, default=100, help="how many texts run in one gate")
    parser.add_argument("--zone", action="append", help="session time zone; by default several")
    parser.add_argument("--all-ways", action="store_true", help="both lanes, shared or not")
    parser.add_argument("--no-minimize", action="store_true", help="leave texts as they are")
    parser.add_argument("--state", type=Path, help="folder for progress; the same one resumes")
    parser.add_argument("--exclusions", action="store_true", help="print what is left out, and end")
    options = parser.parse_args()
    if options.exclusions:
        print(listing())
        return 0
    folder = options.state or Path(mkdtemp(prefix="differential-"))
    folder.mkdir(parents=True, exist_ok=True)
    spark = local_session(folder / "spark", "local[2]", {})
    settings = Settings(
        seed=options.seed, queries=options.queries, batch=options.batch,
        zones=tuple(options.zone or ()), all_ways=options.all_ways,
        minimize=not options.no_minimize,
    )  # fmt: skip
    run = LongRun(spark, folder, settings, lambda line: print(line, file=sys.stderr, flush=True))
    for finding in run.findings():
        print(json.dumps(finding), flush=True)
    print(run.summary(), file=sys.stderr)
    return 1 if run.found else 0


if __name__ == "__main__":
    sys.exit(main())
