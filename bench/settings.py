"""The Spark settings of both sides of the comparison, each with its reason."""

import subprocess
from pathlib import Path

import pyspark

from queries import CLASSES

MASTERS = {
    # As many slots as tasks can run; more slots change nothing if the order is FIFO anyway.
    "native-fifo": "local[2]",
    # Weights of pools matter only while tasks of several pools run at once. With 2 slots, one class
    # starves because of the name of its pool; with 10, none does.
    "native-fair": "local[10]",
    "headgate": "local[2]",
    "headgate-spark": "local[2]",
    "headgate-recorded": "local[2]",
}

SHARED = {
    "spark.driver.memory": "4g",
    # Without libhadoop, which the package from PyPI does not contain, Hadoop starts a process
    # `chmod` for every file it creates: 20 processes per micro-batch. See _FILE_SYSTEM.
    "spark.hadoop.fs.file.impl": "PlainLocalFileSystem",
    # The default writes logs through FileContext, with a checksum file beside each and some 80
    # processes per micro-batch. This class needs a write and a rename, atomic on a local disk.
    # Measured with 4 queries on a busy machine: 1.6 s per micro-batch against 0.45, a log commit
    # 130 ms against 21, and 1 ms with the file system above.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing."
        "FileSystemBasedCheckpointFileManager"
    ),
}
"""Settings of both sides: memory, and how files are created."""

NATIVE = {
    # A selection shuffles nothing. 1 is the minimum, in case a plan has an exchange after all.
    "spark.sql.shuffle.partitions": "1",
    # Adaptive execution costs 27–33 % of every small job, and has nothing to adapt here.
    "spark.sql.adaptive.enabled": "false",
    # A trigger without rows would only add a useless commit.
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    # Nobody reads the metrics.
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.ui.enabled": "false",
    # Above 32 files per micro-batch, Spark lists them in a separate job: 3 s per trigger once a
    # query is 3 s behind, and it never catches up. The second setting skips block locations.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000000",
    "spark.sql.sources.ignoreDataLocality": "true",
    # One task and one result file per micro-batch: the queries keep both cores busy anyway.
    "spark.sql.files.openCostInBytes": "0",
    "spark.sql.files.minPartitionNum": "1",
    # Otherwise every 10th trigger rewrites the lists of all files of the source and of the sink.
    "spark.sql.streaming.fileSource.log.compactInterval": "1000",
    "spark.sql.streaming.fileSink.log.compactInterval": "1000",
    # Spark's default. Headgate sets 8000, for its long fused queries.
    "spark.sql.codegen.hugeMethodLimit": "65535",
}
"""The tuning of native queries. With these settings, their trigger is `processingTime 0`."""

FAIR = {"spark.scheduler.mode": "FAIR"}

_FILE_SYSTEM = """\
import java.nio.file.Files
import java.nio.file.attribute.PosixFilePermissions
import org.apache.hadoop.fs.{Path, RawLocalFileSystem}
import org.apache.hadoop.fs.permission.FsPermission

/** Hadoop's local file system, with a system call for permissions, as libhadoop would do it. */
class PlainLocalFileSystem extends RawLocalFileSystem {
  override def setPermission(path: Path, mode: FsPermission): Unit =
    Files.setPosixFilePermissions(
      pathToFile(path).toPath, PosixFilePermissions.fromString(mode.toString.take(9)))
}
"""

_POOLS = """\
<?xml version="1.0"?>
<allocations>
{pools}
</allocations>
"""

_POOL = (
    '  <pool name="{name}"><schedulingMode>FIFO</schedulingMode>'
    "<weight>{weight}</weight><minShare>0</minShare></pool>"
)


def settings_of(side: str, folder: Path) -> dict[str, str]:
    """Return all Spark settings of a side; `folder` holds the files that `prepare` has written."""
    settings = SHARED | {"spark.driver.extraClassPath": str(folder / "classes")}
    if side.startswith("headgate"):
        return settings
    settings |= NATIVE
    if side == "native-fair":
        pools = (folder / "fairscheduler.xml").as_uri()
        settings |= FAIR | {"spark.scheduler.allocation.file": pools}
    return settings


def prepare(folder: Path) -> None:
    """Write the pools and compile the file system with the Scala compiler that Spark contains.

    Raises:
        CalledProcessError: the compiler failed, or there is no Java.
    """
    pools = "\n".join(
        _POOL.format(name=name, weight=round(weight)) for name, weight in CLASSES.items()
    )
    (folder / "fairscheduler.xml").write_text(_POOLS.format(pools=pools))
    classes, source = folder / "classes", folder / "PlainLocalFileSystem.scala"
    classes.mkdir()
    source.write_text(_FILE_SYSTEM)
    jars = Path(pyspark.__file__).parent / "jars" / "*"
    compiler = ["scala.tools.nsc.Main", "-usejavacp", "-d", str(classes), str(source)]
    subprocess.run(["java", "-cp", str(jars), *compiler], check=True, capture_output=True)
