"""A Spark session for runs from the command line."""

import os
from importlib import import_module
from pathlib import Path

from pyspark.sql import SparkSession

PLACES = ("headgate.spark.jvm.session", "headgate.spark.session")
"""The modules that define `local_session`, in checkouts of different ages."""


def local(folder: Path) -> SparkSession:
    """Start Spark on two cores as Headgate does, with its log in a folder.

    Most code of a run is generated and runs once, so that Java's quick compiler is the better one.
    The 48 MB that Java reserves with it for compiled code are soon full.
    """
    os.environ.setdefault(
        "SPARK_SUBMIT_OPTS",
        "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m",
    )
    for place in PLACES:
        try:
            start = import_module(place).local_session
        except ModuleNotFoundError:
            continue
        session: SparkSession = start(folder, "local[2]", {})
        return session
    raise ModuleNotFoundError(f"none of {', '.join(PLACES)} is in this checkout")
