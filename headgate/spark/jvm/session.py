"""Spark sessions: a local one that logs to a file, and a copy of a user's session."""

import logging
import os
import socket
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from shutil import which
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from headgate.access import PRIVATE, Access
from headgate.errors import ConfigRefused
from headgate.spark.jvm.errors import SPARK_ERRORS, reason_of
from headgate.spark.jvm.launch import launch
from headgate.spark.jvm.time_zone import SESSION_ZONE

START_SETTINGS = {
    # With the default of 100, 160 plans that run in turn are recompiled at every call: 99-197 ms
    # instead of 4 ms.
    "spark.sql.codegen.cache.maxEntries": "10000",
    # The default page size, 32 MB, costs milliseconds per call.
    "spark.buffer.pageSize": "256k",
}
"""Settings of the driver lane that Spark reads only at start; a user's session may lack them."""

SETTINGS = {
    # Measured on small jobs: adaptive execution takes 27–33 % of the time, 8 shuffle partitions
    # take 21 %.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    # A trigger without rows only writes a useless commit.
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    # pyarrow also reads the trains that Spark writes. Its range for INT96 differs, and it cannot
    # read shredded variants.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.variant.writeShredding.enabled": "false",
    # Queries that share a plan lead to long generated methods. The JVM never compiles a method of
    # more than 8 000 bytes, so Spark must fall back to split functions, which are not interpreted.
    "spark.sql.codegen.hugeMethodLimit": "8000",
    "spark.sql.streaming.metricsEnabled": "false",
    # For every file, the default checkpoint writer also writes a checksum and, without Hadoop's
    # native library, starts processes (`chmod`). A write and a rename suffice in one directory.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing."
        "FileSystemBasedCheckpointFileManager"
    ),
    # The driver lists a few train files faster than a job does.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "10000",
    "spark.sql.sources.ignoreDataLocality": "true",
}

_GONE: list[Any] = []
"""JVMs that are gone, kept because caches know a JVM by the identity of its object."""

JAVA_OPTIONS = "spark.driver.extraJavaOptions"

MASTER_S = 5.0
"""How long a standalone master may take to accept a connection."""

LOG4J = """\
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = {log}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d %p %c{{1}}: %m%n%ex
"""


def local_session(
    state: Path, master: str, settings: Mapping[str, str], access: Access = PRIVATE
) -> SparkSession:
    """Start Spark with its log in the state directory, so that it does not write to the screen.

    Args:
        access: who may read the files that Spark writes.

    Raises:
        ConfigRefused: there is no Java, the master does not answer, or Spark refuses a setting.
    """
    _find_java()
    announced = announced_address(master)
    access.folder(state)
    log, log4j = state / "spark.log", state / "log4j2.properties"
    PRIVATE.touch(log)
    PRIVATE.write(log4j, LOG4J.format(log=log).encode())
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    options = {
        "spark.master": master,
        "spark.app.name": "headgate",
        "spark.hadoop.fs.permissions.umask-mode": f"{access.umask:03o}",
        # By default, results do not depend on the time zone of the driver's machine.
        SESSION_ZONE: "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "2g",
        "spark.sql.warehouse.dir": str(state / "warehouse"),
        **START_SETTINGS,
        **SETTINGS,
        **announced,
        **settings,
        # Threads with the usual 1 MB of stack fail to plan a query of 500 nested brackets.
        JAVA_OPTIONS: f"-Xss8m {quote(f'-Dlog4j2.configurationFile=file:{log4j}')}"
        f" {settings.get(JAVA_OPTIONS, '')}",
    }
    is_ours = SparkContext._gateway is None
    quiet_python()  # first: py4j also logs the death of a JVM that starts
    with _stderr_to(log):
        try:
            launch(options, access)
            builder = SparkSession.builder
            for key, value in options.items():
                builder = builder.config(key, value)
            session = builder.getOrCreate()
        except SPARK_ERRORS as error:
            raise ConfigRefused(
                path="spark", key="master", value=master,
                expected=f"a Spark that starts with these settings: {reason_of(error)}",
            ) from error  # fmt: skip
    if is_ours:
        _ignore_sigterm(session)
    return session


def stop_session(session: SparkSession) -> None:
    """Stop a session of our own. If its JVM is gone, forget it, so that another one can start."""
    try:
        with warnings.catch_warnings(action="ignore", category=RuntimeWarning):
            session.stop()
    except (Py4JError, OSError):
        forget_jvm()


def forget_jvm() -> None:
    """Forget a JVM that is gone, so that another one can start in this process."""
    _GONE.append(SparkContext._jvm)
    SparkContext._active_spark_context = SparkContext._gateway = SparkContext._jvm = None
    SparkSession._instantiatedSession = SparkSession._activeSession = None


def _ignore_sigterm(session: SparkSession) -> None:
    """Have the JVM ignore SIGTERM, as it ignores Ctrl-C: it ends with this process.

    `timeout` sends the signal to the whole process group, systemd to all processes of a service.
    Calls under way need the JVM until the clean stop is over. A process group of its own would not
    help with systemd, and a SIGKILL for the group would miss the JVM. When this process dies, the
    JVM reads the end of its standard input and exits.
    """
    jvm: Any = session._jvm
    misc = jvm.sun.misc
    misc.Signal.handle(misc.Signal("TERM"), misc.SignalHandler.SIG_IGN)


def _find_java() -> None:
    """Set JAVA_HOME to the Java that `setup/` has installed, unless it is already set.

    Raises:
        ConfigRefused: there is no Java.
    """
    installed = Path(sys.prefix) / "java"
    if "JAVA_HOME" not in os.environ and (installed / "bin" / "java").exists():
        os.environ["JAVA_HOME"] = str(installed)
    home = os.environ.get("JAVA_HOME")
    if not which("java" if home is None else str(Path(home) / "bin" / "java")):
        reason = "PATH has no `java`" if home is None else "it has no bin/java"
        raise ConfigRefused(
            path="spark", key="JAVA_HOME", value=home,
            expected=f"set to the directory of Java 17 or newer: {reason}",
        )  # fmt: skip


def announced_address(master: str) -> dict[str, str]:
    """Return the settings with the address at which executors find the driver.

    With a local master it is the loopback address. With a standalone master it is the address from
    which this machine reaches the master. Other cluster managers leave it to Spark, which takes the
    address of the host name.

    Raises:
        ConfigRefused: no master answers.
    """
    if "SPARK_LOCAL_IP" in os.environ:
        return {}
    if master.startswith("local"):
        return {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    reason = ""
    for place in master.removeprefix("spark://").split(",") if "spark://" in master else ():
        host, _, port = place.rpartition(":")
        try:
            with socket.create_connection((host.strip("[]"), int(port)), MASTER_S) as connection:
                return {"spark.driver.host": connection.getsockname()[0]}
        except (OSError, ValueError) as error:
            reason = (getattr(error, "strerror", None) or str(error)).lower()
    if reason:
        raise ConfigRefused(
            path="spark", key="master", value=master, expected=f"a master that answers: {reason}"
        )
    return {}


def own_session(session: SparkSession) -> SparkSession:
    """Return a copy of the user's session, with its functions and Headgate's settings.

    The user's session is not changed.

    Raises:
        ConfigRefused: the session is a Spark Connect session.
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
    """Set this thread's active session, from which some parts of Spark read their settings."""
    jvm: Any = session._jvm
    jvm.SparkSession.setActiveSession(session._jsparkSession)


def quiet_python() -> None:
    """Silence the logs of pyspark and py4j about errors that Headgate reports itself."""
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger", "py4j"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


@contextmanager
def _stderr_to(log: Path) -> Iterator[None]:
    """Redirect stderr to a file for a while; a JVM that starts meanwhile keeps writing there."""
    sys.stderr.flush()
    stderr = os.dup(2)
    with log.open("ab") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
