"""Generated queries answer as Spark does in batch, on both lanes, shared or not."""

import json
import sys
from pathlib import Path
from shutil import rmtree
from tempfile import gettempdir

import pytest
from kit.seeds import drawing_seed
from pyspark.sql import SparkSession

from differential.exclusions import listing
from differential.long_run import LongRun, Settings

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _check(run: LongRun) -> None:
    differences = list(run.findings())
    print(listing())
    print(run.summary())
    assert not differences, "\n".join(map(json.dumps, differences))


def test_generated_queries_have_the_answers_of_batch(spark: SparkSession, tmp_path: Path) -> None:
    settings = Settings(seed=15, queries=20, batch=20, minimize=False)
    _check(LongRun(spark, tmp_path, settings, _tell))


@pytest.mark.long
def test_generated_queries_have_the_answers_of_batch_in_the_long_form(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    """Set HEADGATE_SEED for other queries; an interrupted run resumes where it was."""
    seed = drawing_seed()
    folder = Path(gettempdir()) / f"headgate-differential-{seed}"
    folder.mkdir(exist_ok=True)
    with capsys.disabled():
        _check(LongRun(spark, folder, Settings(seed=seed, queries=5_000), _tell))
    rmtree(folder)
