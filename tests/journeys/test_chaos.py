"""The harness of `make chaos` in its short form, and that it notices what it looks for."""

import inspect
import re
import shutil
from pathlib import Path
from random import Random

import pytest
from chaos import faults
from chaos.plan import KINDS, Planned, groups_of, strike, surroundings
from kit.seeds import drawing_seed

from headgate.spark.journal.journal import Journal

POINT = re.compile(r'reached\("([^"]+)"\)')

OF_LETTERS = {"letters written", "letters journalled"}
"""Points for unreadable records: `test_dead_letters.py` has runs that die there."""

OF_SHEDDING = {"rule journalled"}
"""Points while tuples are dropped: `test_shedding.py` has runs that die there."""

KILLS = [name for name, kind in KINDS.items() if kind.group == "kill" and " inside " in name]


def test_every_point_of_the_engine_has_a_fault() -> None:
    sources = Path(inspect.getfile(Journal)).parents[2].rglob("*.py")
    points = {point for file in sources for point in POINT.findall(file.read_text())}
    assert points == faults.POINTS | OF_LETTERS | OF_SHEDDING


def test_a_seed_has_at_least_150_faults_and_always_the_same_ones() -> None:
    planned = [fault for _, group in groups_of(7) for fault in group]
    assert len(planned) >= 150
    assert {fault.number for fault in planned} == set(range(len(planned)))
    assert groups_of(7) == groups_of(7) != groups_of(8)


@pytest.mark.spark
@pytest.mark.slow
def test_faults_lose_nothing_and_the_harness_would_notice(tmp_path: Path) -> None:
    seed = drawing_seed()
    rng = Random(seed)
    with surroundings(tmp_path / "chain", "kill", seed) as chain:
        for number, kind in enumerate((rng.choice(KILLS), "second run on the same state")):
            print(kind)
            outcome = strike(chain, Planned(number, kind), rng)
            assert (outcome.lost, outcome.twice, outcome.wrong) == (0, 0, "")
            assert outcome.refused == number
        results = chain.state / "results" / "sliding"
        first, *_, last = sorted(results.glob("[0-9]*.parquet"))
        shutil.copy(first, results / "999999999998-999999999999.parquet")
        last.unlink()
        answers = chain.differences()
        assert answers.twice
        assert answers.lost
