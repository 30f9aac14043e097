"""Check the texts that were once answered wrongly, in one gate for each way.

    PYTHONPATH=$PWD:$PWD/tests/journeys .venv/bin/python -m differential.known_check [WORDS ...]

checks the groups whose names contain all of the words, and prints differences as JSON lines.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import mkdtemp

from pyspark.sql import SparkSession

from differential.batch import Finding, answered, check
from differential.cases import Case
from differential.known_answers import KNOWN
from differential.known_streams import KNOWN_LAYOUTS
from differential.oracle import Oracle
from differential.trial import WAYS, Way
from differential.world import World
from headgate.spark.room import local_session


def check_known(
    spark: SparkSession, folder: Path, groups: Mapping[str, Sequence[Case]], ways: Sequence[Way]
) -> dict[str, list[Finding]]:
    """Return the differences of every group; all groups run in one gate for each way."""
    world = World(spark, folder / "world", seed=15, layouts=KNOWN_LAYOUTS)
    oracle = Oracle(world)
    cases = {case.sql: case for cases in groups.values() for case in cases}
    questions = []
    for number, case in enumerate(cases.values()):
        question = answered(oracle, f"q{number}", case)
        assert question is not None, f"Spark does not accept: {case.sql}"
        questions.append(question)
    findings, tally = check(world, questions, ways, folder / "gates")
    print(tally)
    by_text = {
        name: [finding for finding in findings if finding.case.sql in {c.sql for c in cases}]
        for name, cases in groups.items()
    }
    return by_text


def main(words: Sequence[str]) -> int:
    groups = {name: cases for name, cases in KNOWN.items() if all(w in name for w in words)}
    folder = Path(mkdtemp(prefix="known-"))
    spark = local_session(folder / "spark", "local[2]", {})
    differences = check_known(spark, folder, groups, WAYS)
    for name, findings in differences.items():
        for finding in findings:
            print(json.dumps({"group": name, **finding.line()}))
    return 1 if any(differences.values()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
