"""A check of the texts that were once answered wrongly, in one gate for each way.

    PYTHONPATH=$PWD:$PWD/tests/journeys .venv/bin/python -m differential.known_check [WORD ...]

checks the groups and texts that contain all of the words, and prints the differences as JSON lines.
"""

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import mkdtemp

from pyspark.sql import SparkSession

from differential.batch import Finding, Tally, answered, check
from differential.cases import Case
from differential.known_answers import KNOWN
from differential.known_streams import KNOWN_LAYOUTS
from differential.oracle import Oracle
from differential.session import local
from differential.trial import WAYS, Way
from differential.world import World


def check_known(
    spark: SparkSession, folder: Path, groups: Mapping[str, Sequence[Case]], ways: Mapping[Way, int]
) -> dict[str, list[Finding]]:
    """Return the differences of every group; all groups run in one gate for each way.

    Args:
        ways: a step for each way: with 1 every text runs that way, with 2 every second one.
    """
    world = World(spark, folder / "world", seed=15, layouts=KNOWN_LAYOUTS)
    oracle = Oracle(world)
    cases = {case.sql: case for cases in groups.values() for case in cases}
    questions, began_s = [], time.monotonic()
    for number, case in enumerate(cases.values()):
        question = answered(oracle, f"q{number}", case)
        assert question is not None, f"Spark does not accept: {case.sql}"
        questions.append(question)
    tally = Tally(seconds=Counter(batch=int(time.monotonic() - began_s)))
    findings: list[Finding] = []
    for way, step in ways.items():
        differences, way_tally = check(world, questions[::step], [way], folder / "gates")
        findings += differences
        tally += way_tally
    print(tally)
    by_group = {
        name: [finding for finding in findings if finding.case.sql in {c.sql for c in cases}]
        for name, cases in groups.items()
    }
    return by_group


def main() -> int:
    parser = argparse.ArgumentParser(prog="differential.known_check", description=__doc__)
    parser.add_argument("words", nargs="*", help="check texts with all of these words")
    parser.add_argument("--all-ways", action="store_true", help="both lanes, shared or not")
    options = parser.parse_args()
    groups = {
        name: [
            case for case in cases if all(word in f"{name} {case.sql}" for word in options.words)
        ]
        for name, cases in KNOWN.items()
    }
    folder = Path(mkdtemp(prefix="known-"))
    spark = local(folder / "spark")
    ways = dict.fromkeys(WAYS if options.all_ways else WAYS[:2], 1)
    differences = check_known(spark, folder, groups, ways)
    for name, findings in differences.items():
        for finding in findings:
            print(json.dumps({"group": name, **finding.line()}))
    return 1 if any(differences.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
