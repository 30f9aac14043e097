"""The executors of a cluster: whether they can read and write the state directory."""

import re
import shutil
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from headgate.access import Access
from headgate.errors import RecoveryRefused
from headgate.spark.jvm.errors import SPARK_ERRORS, cause_of
from headgate.spark.jvm.paths import literal_path

PARTS = 8
"""Tasks of a question for each executor, so that each very likely gets one."""

_HOST = re.compile(r"\((\S+) executor \S+\)")


def refuse_unshared(session: SparkSession, state: Path, access: Access) -> None:
    """Let the executors of a cluster write to the state directory and read what the driver wrote.

    Raises:
        RecoveryRefused: they cannot; names a host.
    """
    if str(session.sparkContext.master).split("[")[0] == "local":
        return
    folder = state / f".executors-{uuid.uuid4().hex}"
    try:
        access.folder(folder)
        pq.write_table(pa.table({"id": [0]}), folder / "driver.parquet")
        access.apply(folder)
        # Its tasks also wait until there are executors, of which the next question needs all.
        _refuse_unreadable(session, access, folder, PARTS)
        parts = PARTS * max(1, len(_hosts(session)))
        _refuse_unreadable(session, access, folder, parts)
        _refuse_unwritable(session, access, folder / "executors", parts)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _refuse_unreadable(session: SparkSession, access: Access, folder: Path, parts: int) -> None:
    file = literal_path(str(folder / "driver.parquet"))
    try:
        session.read.schema("id BIGINT").parquet(*[file] * parts).repartition(parts).count()
    except SPARK_ERRORS as error:
        raise _refused(
            session, access, folder.parent, f"cannot read it: {cause_of(error)}", error
        ) from error


def _refuse_unwritable(session: SparkSession, access: Access, folder: Path, parts: int) -> None:
    try:
        session.range(0, parts, 1, parts).write.parquet(str(folder))
    except SPARK_ERRORS as error:
        raise _refused(
            session, access, folder.parents[1], f"cannot write it: {cause_of(error)}", error
        ) from error
    rows = sum(pq.read_metadata(file).num_rows for file in folder.glob("*.parquet"))
    if rows < parts:
        raise _refused(
            session, access, folder.parents[1], "writes to another directory of this name"
        )


def _refused(
    session: SparkSession,
    access: Access,
    state: Path,
    fault: str,
    error: Exception | None = None,
) -> RecoveryRefused:
    place = _HOST.search(str(error))
    host = place[1] if place else ", ".join(_hosts(session)) or "unknown"
    return RecoveryRefused(
        subject=f"state directory {state}",
        expected="a directory that the executors of Spark can read and write, as the driver can",
        found=f"an executor on host {host} that {fault}",
        fix=f"mount a shared file system (such as NFS) at the same path on {host} and on the"
        " driver's machine. If executors run as another user, set `file_mode: '0660'` and `group`"
        f" to a group of both users (now {access.mode:04o}, group"
        f" {'of the process' if access.group is None else access.group}), and give executors the"
        " umask 007. Or use the master local[*]",
    )


def _hosts(session: SparkSession) -> list[str]:
    """Return the hosts of the executors; that of the driver only if it is the only one."""
    context: Any = session.sparkContext
    places = context._jsc.sc().getExecutorMemoryStatus().keys().mkString(" ").split()
    driver = f"{context.getConf().get('spark.driver.host')}:"
    others = [place for place in places if not place.startswith(driver)] or places
    return sorted({place.rpartition(":")[0] for place in others})
