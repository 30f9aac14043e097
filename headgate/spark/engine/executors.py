"""A question to executors at the start: can they read and write the state directory?"""

from pathlib import Path

from pyspark.sql import SparkSession

from headgate.access import Access
from headgate.errors import RecoveryRefused
from headgate.spark.jvm.errors import SPARK_ERRORS, cause_of
from headgate.spark.log.files import remove

NAME = "probe"


def refuse_strangers(session: SparkSession, state: Path, access: Access) -> None:
    """Refuse a state directory that executors cannot use. With a local master there are none.

    Raises:
        RecoveryRefused: an executor cannot read or write there.
    """
    context = session.sparkContext
    if str(context.master).split("[")[0] == "local":
        return
    folder = state / NAME
    remove(folder)
    access.folder(folder)
    access.write(folder / "question", b"1\n")
    try:
        frame = session.read.text(str(folder / "question"))
        frame.repartition(context.defaultParallelism).write.text(str(folder / "answer"))
        if not any(file.stat().st_size for file in (folder / "answer").glob("part-*")):
            raise _refused(state, "executors that write to another directory of this name", access)
    except SPARK_ERRORS as error:
        raise _refused(state, f"executors that cannot: {cause_of(error)}", access) from error
    finally:
        remove(folder)


def _refused(state: Path, answer: str, access: Access) -> RecoveryRefused:
    return RecoveryRefused(
        subject=f"state directory {state}",
        expected="a directory that executors can read and write",
        found=answer,
        fix="put it on a file system that all machines have under this path. If executors run as"
        " another user, set `file_mode: '0660'` and `group` to a group of both users (now"
        f" {access.mode:04o}, group {'of the process' if access.group is None else access.group}),"
        " and give executors the umask 007",
    )
