"""A Spark session that keeps quiet, and sessions of our own beside a user's."""

import logging
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from headgate.errors import ConfigRefused
from headgate.spark.jvm.time_zone import SESSION_ZONE

START_SETTINGS = {
    # The default of 100 plans makes 160 plans in turn recompile at every call: 99-197 ms, not 4.
    "spark.sql.codegen.cache.maxEntries": "10000",
    # The default pages of 32 MB cost milliseconds a call.
    "spark.buffer.pageSize": "256k",
}
"""Settings of the driver lane that Spark takes at start only; a user's session may lack them."""

SETTINGS = {
    # Measured on small jobs: adaptive execution costs 27–33 % of each, 8 shuffle partitions 21 %.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    # A trigger without rows is a commit without use.
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    # Trains that Spark writes are read by pyarrow, too: INT96 has another range there, and it does
    # not know shredded variants.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.variant.writeShredding.enabled": "false",
    # Fused queries make long generated methods. The JVM never compiles one above 8 000 bytes of
    # code, so let Spark fall back to split functions there instead of running it interpreted.
    "spark.sql.codegen.hugeMethodLimit": "8000",
    "spark.sql.streaming.metricsEnabled": "false",
    # The default checkpoint writer starts processes (`chmod`, where Hadoop's native library is
    # missing) for every file and a checksum beside it; a write and a rename do on one directory.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing."
        "FileSystemBasedCheckpointFileManager"
    ),
    # Listing a few train files in the driver is quicker than by a job.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "10000",
    "spark.sql.sources.ignoreDataLocality": "true",
}

LOG4J = """\
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = {log}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d %p %c{{1}}: %m%n%ex
"""


def local_session(state: Path, master: str, settings: Mapping[str, str]) -> SparkSession:
    """Starts Spark with its log in the state directory, so that the screen stays ours."""
    _find_java()
    state.mkdir(parents=True, exist_ok=True)
    log, log4j = state / "spark.log", state / "log4j2.properties"
    log4j.write_text(LOG4J.format(log=log))
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master(master).appName("headgate")
    options = {
        # Unless the user says otherwise, results do not depend on where the driver stands.
        SESSION_ZONE: "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "2g",
        "spark.sql.warehouse.dir": str(state / "warehouse"),
        # Threads with the usual 1 MB of stack fail to plan a query of 500 nested brackets.
        "spark.driver.extraJavaOptions": f"-Xss8m -Dlog4j2.configurationFile=file:{log4j}",
        **START_SETTINGS,
        **SETTINGS,
        **settings,
    }
    for key, value in options.items():
        builder = builder.config(key, value)
    with _stderr_to(log):
        session = builder.getOrCreate()
    quiet_python()
    return session


def _find_java() -> None:
    """Points Spark to the Java that the set-up has installed, where the machine has none."""
    installed = Path(sys.prefix) / "java"
    if "JAVA_HOME" not in os.environ and (installed / "bin" / "java").exists():
        os.environ["JAVA_HOME"] = str(installed)


def own_session(session: SparkSession) -> SparkSession:
    """Return a session with the user's functions and our settings; theirs is not touched.

    Raises:
        ConfigRefused: the session is one of Spark Connect.
    """
    if not hasattr(session, "_jsparkSession"):
        raise ConfigRefused(
            path="headgate", key="spark", value="a Spark Connect session",
            expected="a classic one, whose driver runs in this process: plans run there without a"
            " job. Build it with SparkSession.builder.master(...)",
        )  # fmt: skip
    copy = SparkSession(session.sparkContext, session._jsparkSession.cloneSession())
    for key, value in SETTINGS.items():
        copy.conf.set(key, value)
    return copy


def activate(session: SparkSession) -> None:
    """Make a session this thread's: some parts of Spark ask the active session for settings."""
    jvm: Any = session._jvm
    jvm.SparkSession.setActiveSession(session._jsparkSession)


def quiet_python() -> None:
    """Silences what pyspark and py4j log of errors that we report ourselves."""
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger", "py4j"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


@contextmanager
def _stderr_to(log: Path) -> Iterator[None]:
    """Lets the JVM, which keeps the stderr it is born with, write to a file."""
    sys.stderr.flush()
    kept = os.dup(2)
    with log.open("ab") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
