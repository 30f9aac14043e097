"""A session of our own beside that of the whole run."""

import pytest
from pyspark.sql import SparkSession

from headgate.spark.session import own_session


@pytest.fixture(scope="module")
def own(spark: SparkSession) -> SparkSession:
    return own_session(spark)
