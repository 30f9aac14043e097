"""Texts that were once answered wrongly are now answered as Spark does in batch."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from differential.batch import Finding
from differential.known_answers import KNOWN
from differential.known_check import check_known
from differential.trial import WAYS

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SHORT = {WAYS[0]: 1, WAYS[1]: 12}
"""In the short form all texts run in the driver, and every twelfth text also runs as a job."""


@pytest.fixture(scope="module")
def findings(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, list[Finding]]:
    folder: Path = tmp_path_factory.mktemp("known")
    return check_known(spark, folder, KNOWN, SHORT)


@pytest.mark.parametrize("group", KNOWN)
def test_answers_equal_those_of_batch(findings: dict[str, list[Finding]], group: str) -> None:
    assert not findings[group], "\n".join(str(finding.line()) for finding in findings[group])


@pytest.mark.long
def test_answers_equal_those_of_batch_on_all_ways(spark: SparkSession, tmp_path: Path) -> None:
    findings = check_known(spark, tmp_path, KNOWN, dict.fromkeys(WAYS, 1))
    differences = [finding.line() for group in findings.values() for finding in group]
    assert not differences, "\n".join(map(str, differences))
