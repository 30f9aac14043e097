"""A cluster whose executors run as another user: the start names the settings that let them in."""

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pyspark
import pytest

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.long]

NOBODY = 65534
SPARK = Path(pyspark.__file__).parent
CLASS = "org.apache.spark.deploy"


@pytest.fixture
def folder() -> Iterator[Path]:
    """Yield a directory that other users can reach."""
    with tempfile.TemporaryDirectory(prefix="cluster-") as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


@pytest.fixture
def master(folder: Path) -> Iterator[str]:
    """Start a cluster of one worker, which belongs to another user; yield its address."""
    if os.geteuid():
        pytest.skip("only root can start a worker as another user")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    address, work = f"spark://127.0.0.1:{port}", folder / "work"
    work.mkdir()
    os.chown(work, NOBODY, NOBODY)
    ui = ["--webui-port", "0", "--host", "127.0.0.1"]
    master = [str(SPARK / "bin/spark-class"), f"{CLASS}.master.Master", "--port", str(port), *ui]
    worker = [str(SPARK / "bin/spark-class"), f"{CLASS}.worker.Worker", address, *ui]
    worker += ["--cores", "1", "--memory", "1g", "--work-dir", str(work)]
    environment = {**os.environ, "SPARK_HOME": str(SPARK), "SPARK_LOCAL_IP": "127.0.0.1"}
    with ExitStack() as stack:
        log = stack.enter_context((folder / "cluster.log").open("w"))
        for command, user in ((master, None), (worker, NOBODY)):
            process = subprocess.Popen(
                command, env=environment, stdout=log, stderr=log, user=user, group=user,
                extra_groups=[] if user else None, umask=0o007, cwd=str(work),
            )  # fmt: skip
            stack.callback(process.wait)
            stack.callback(process.kill)
        ends_at_s = time.monotonic() + 240
        while "Registering worker" not in (text := (folder / "cluster.log").read_text()):
            assert time.monotonic() < ends_at_s, text
            time.sleep(0.2)
        yield address


ASK = """
import sys
from pathlib import Path
from headgate.access import PRIVATE, access_of
from headgate.errors import RecoveryRefused
from headgate.spark.jvm.executors import refuse_unshared
from headgate.spark.jvm.session import local_session
folder, master, group = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
shared = access_of("0660", group)
config = {"spark.executor.memory": "512m", "spark.cores.max": "1", "spark.task.maxFailures": "1"}
session = local_session(folder / "driver", master, config, shared)
for name, access in (("private", PRIVATE), ("shared", shared)):
    access.folder(folder / name)
    try:
        refuse_unshared(session, folder / name, access)
        print(name, "accepted", flush=True)
    except RecoveryRefused as refused:
        print(name, refused, flush=True)
session.stop()
"""


def test_executors_of_another_user_need_the_settings_that_the_refusal_names(
    folder: Path, master: str
) -> None:
    command = [sys.executable, "-c", ASK, str(folder), master, str(NOBODY)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    first, *_, last = done.stdout.splitlines()
    assert first.startswith(f"private state directory {folder}/private: expected a directory that")
    assert "set `file_mode: '0660'` and `group` to a group of both users" in done.stdout
    assert last == "shared accepted"
    assert list((folder / "shared").iterdir()) == []
