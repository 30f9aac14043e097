"""What Spark is told on either side of the comparison, each setting with its reason."""

import subprocess
from pathlib import Path

import pyspark

from queries import CLASSES

MASTERS = {
    # As many slots as tasks can run; more slots change nothing where the order is FIFO anyway.
    "native-fifo": "local[2]",
    # Weights of pools act only where tasks of several pools run at once: with 2 slots one class
    # starves by the name of its pool, with 10 none does.
    "native-fair": "local[10]",
    "headgate": "local[2]",
    "headgate-spark": "local[2]",
    "headgate-recorded": "local[2]",
}

SHARED = {
    "spark.driver.memory": "4g",
    # Without libhadoop, which the package from PyPI does not bring, Hadoop starts a process
    # `chmod` for every file it makes: 20 processes a micro-batch. See _FILE_SYSTEM.
    "spark.hadoop.fs.file.impl": "PlainLocalFileSystem",
    # The default writes logs through FileContext, with a checksum file beside each and some 80
    # processes a micro-batch; this one is a write and a rename, atomic on a local disk. Measured
    # with 4 queries on a busy machine: 1.6 s a micro-batch against 0.45, a log commit 130 ms
    # against 21, and 1 ms with the file system above.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing."
        "FileSystemBasedCheckpointFileManager"
    ),
}
"""The ground both stand on: memory, and how files are made."""

NATIVE = {
    # A selection shuffles nothing; 1 is the least, should a plan have an exchange after all.
    "spark.sql.shuffle.partitions": "1",
    # Costs 27–33 % of every small job, and has nothing to adapt here.
    "spark.sql.adaptive.enabled": "false",
    # A trigger without rows is a commit without use.
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    # Nobody reads them.
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.ui.enabled": "false",
    # Above 32 files a micro-batch, Spark lists them by a job of its own: 3 s a trigger once a
    # query is 3 s behind, and it never catches up. Also spares a look at each file's blocks.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000000",
    "spark.sql.sources.ignoreDataLocality": "true",
    # One task and one result file a micro-batch: queries are enough to keep both cores busy.
    "spark.sql.files.openCostInBytes": "0",
    "spark.sql.files.minPartitionNum": "1",
    # Every 10th trigger would write the list of all files again, of the source and of the sink.
    "spark.sql.streaming.fileSource.log.compactInterval": "1000",
    "spark.sql.streaming.fileSink.log.compactInterval": "1000",
    # Spark's default, against Headgate's 8000, which is for its long fused queries.
    "spark.sql.codegen.hugeMethodLimit": "65535",
}
"""How N native queries are tuned; with these, the trigger is `processingTime 0`: at once."""

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
    """Gives everything a side's Spark is told; `folder` holds what `prepare` has put there."""
    settings = SHARED | {"spark.driver.extraClassPath": str(folder / "classes")}
    if side.startswith("headgate"):
        return settings
    settings |= NATIVE
    if side == "native-fair":
        pools = (folder / "fairscheduler.xml").as_uri()
        settings |= FAIR | {"spark.scheduler.allocation.file": pools}
    return settings


def prepare(folder: Path) -> None:
    """Writes the pools and compiles the file system, by the Scala compiler that Spark brings.

    Raises:
        CalledProcessError: the compiler refuses, or there is no Java.
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
