"""A Spark session for runs from the command line."""

import os
from importlib import import_module
from pathlib import Path

from pyspark.sql import SparkSession

PLACES = ("headgate.spark.jvm.session", "headgate.spark.session")
"""Where checkouts of different ages have `local_session`."""


def local(folder: Path) -> SparkSession:
    """Start Spark on two cores as Headgate does, with its log in a folder.

    Most code of a run is generated and runs once, so that the quick compiler is the better one.
    """
    os.environ.setdefault(
        "SPARK_SUBMIT_OPTS",
        "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=512m",
    )
    for place in PLACES:
        try:
            start = import_module(place).local_session
        except ModuleNotFoundError:
            continue
        session: SparkSession = start(folder, "local[2]", {})
        return session
    raise ModuleNotFoundError(f"none of {', '.join(PLACES)} is in this checkout")
