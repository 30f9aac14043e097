"""Runs of a pipeline file in processes of their own, which a fault may end at any instant.

A run is the command `headgate run`. Its process is forked from one that has imported everything,
which saves three seconds. Runs may use the same JVM, one after the other, as to start one takes
much longer than to recover: such a run ends, and its JVM does not.
"""

import ctypes
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import forkserver, get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from pyspark import SparkContext

import headgate.server.service  # imported here so that no run has to
import headgate.spark.room
from headgate import Headgate
from headgate.cli import main
from headgate.errors import HeadgateError
from headgate.runtime.run import run as running
from headgate.server import Client
from headgate.spark.jvm.session import local_session
from headgate.spark.sinks.files import compaction

TESTS = Path(__file__).parents[1]
FOLDERS = (TESTS.parent, TESTS, TESTS / "journeys")
"""What a run imports from, and the JVM's Python workers too."""

QUICK_JAVA = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m"
    " -Dspark.sql.streaming.pollingDelay=100ms"
)
START_S = 600.0
SMALL_MEMORY = "256k"
NEW_NAMESPACE = 0x00020000

FORKS = get_context("forkserver")
FORKS.set_forkserver_preload(["chaos.runs"])


@contextmanager
def _environment(**values: str) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _forked(target: Callable[..., None], *arguments: Any) -> Any:
    """Start a process that runs a function; it leads a process group of its own."""
    path = os.pathsep.join(map(str, FOLDERS))
    with _environment(PYTHONPATH=path, SPARK_SUBMIT_OPTS=QUICK_JAVA, OPENBLAS_NUM_THREADS="1"):
        forkserver.ensure_running()
    process = FORKS.Process(target=target, args=arguments)
    process.start()
    return process


class Jvm:
    """A JVM that outlives the runs that use it."""

    def __init__(self, folder: Path) -> None:
        self._pipe, end = FORKS.Pipe()
        self._process = _forked(_keep_jvm, str(folder), end)
        end.close()
        if not self._pipe.poll(START_S):
            raise TimeoutError(f"no JVM after {START_S:g} s; its log is {folder}/spark.log")
        self.port, self.secret = self._pipe.recv()

    def clear(self) -> None:
        """End the Spark application that a killed run has left."""
        self._pipe.send("clear")
        if not self._pipe.poll(START_S):
            raise TimeoutError(f"the Spark application of a killed run goes on after {START_S:g} s")
        self._pipe.recv()

    def close(self) -> None:
        self._pipe.close()
        self._process.join(20)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)


def _keep_jvm(folder: str, pipe: Connection) -> None:
    os.setsid()
    session = local_session(Path(folder), "local[2]", {})
    gateway: Any = SparkContext._gateway
    jvm: Any = SparkContext._jvm
    session.stop()
    place = gateway.gateway_parameters
    pipe.send((place.port, place.auth_token))
    with suppress(EOFError):
        while pipe.recv():
            contexts = jvm.java.lang.Class.forName("org.apache.spark.SparkContext$")
            active = contexts.getField("MODULE$").get(None).getActive()
            if active.isDefined():
                active.get().stop()
            pipe.send("cleared")


class Run:
    """A process that runs `headgate` with some words.

    Args:
        jvm: the JVM that it uses; without one it starts its own.
        armed: a file that names a point of the engine at which the process kills itself.
        small_memory: give the run a shared memory of its own that is soon full.
    """

    def __init__(
        self,
        words: Sequence[str],
        state: Path,
        log: Path,
        *,
        jvm: Jvm | None = None,
        armed: Path,
        small_memory: bool = False,
    ) -> None:
        self._state, self._log = state, log
        self._log_begins = log.stat().st_size if log.exists() else 0
        gateway = None if jvm is None else (jvm.port, jvm.secret)
        self.process = _forked(
            _serve, list(words), str(log), gateway, str(armed), small_memory, str(log.parent)
        )

    @property
    def pid(self) -> int:
        return int(self.process.pid)

    @property
    def printed(self) -> str:
        """What the process has printed so far, on both outputs."""
        with self._log.open() as log:
            log.seek(self._log_begins)
            return log.read()

    def ready(self, timeout_s: float = START_S) -> bool:
        """Wait until the run is ready; return False if it has ended instead."""
        ends_at_s = time.monotonic() + timeout_s
        while self.process.exitcode is None:
            with suppress(HeadgateError):
                client = self.client
                if client.health()["ready"]:
                    return True
            if time.monotonic() > ends_at_s:
                raise TimeoutError(f"the run did not begin within {timeout_s:g} s: {self.printed}")
            self.process.join(0.05)
        return False

    @property
    def client(self) -> Client:
        """A client of this run.

        Raises:
            HeadgateError: it does not answer yet, or not any more.
        """
        return Client(self._state)

    def ended(self, timeout_s: float) -> bool:
        """Wait for the end of the process, at most `timeout_s`; return True if it has ended."""
        self.process.join(timeout_s)
        return self.process.exitcode is not None

    def signal(self, number: int, *, group: bool = False) -> None:
        with suppress(ProcessLookupError):
            (os.killpg if group else os.kill)(self.pid, number)

    def kill(self) -> None:
        """Kill the process, and its JVM if that is its own."""
        self.signal(signal.SIGKILL, group=True)
        self.process.join(30)

    def java(self) -> int:
        """Return the process of the JVM that the run has started."""
        for line in Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split():
            with suppress(OSError):
                if "java" in Path(f"/proc/{line}/comm").read_text():
                    return int(line)
        raise ProcessLookupError(f"process {self.pid} has started no JVM")


def _serve(
    words: list[str],
    log: str,
    gateway: tuple[int, str] | None,
    armed: str,
    small_memory: bool,
    folder: str,
) -> None:
    """Run a command in this process, as after `exec`."""
    os.setsid()
    with open(log, "ab") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    if small_memory:
        _own_shared_memory()
    if gateway is not None:
        os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"] = (
            str(gateway[0]), gateway[1],
        )  # fmt: skip
    running.FORGET_EVERY_S = 0.0  # so that even a run of a few seconds drops trains many times
    compaction.FEW, compaction.TIERS = 2, 1
    headgate.spark.room.local_session = _with_function(Path(folder) / "hang")
    Headgate._reached = _death(Path(armed))  # type: ignore[method-assign]
    main(words)


def _own_shared_memory() -> None:
    """Mount a small file system over /dev/shm that only this process and its children see."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(NEW_NAMESPACE):
        raise OSError(ctypes.get_errno(), "unshare")
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    size = f"size={SMALL_MEMORY}"
    subprocess.run(["mount", "-t", "tmpfs", "-o", size, "tmpfs", "/dev/shm"], check=True)


def _with_function(file: Path) -> Callable[..., Any]:
    """Return a `local_session` with the SQL function `held`, which hangs while a file exists."""
    name = str(file)

    def held(value: int) -> int:  # nested: Spark's Python workers then need no import
        while os.path.exists(name):
            time.sleep(0.05)
        return value

    def start(*arguments: Any, **options: Any) -> Any:
        session = local_session(*arguments, **options)
        session.udf.register("held", held, "int")
        return session

    return start


def _death(armed: Path) -> Callable[[Headgate, str], None]:
    """Return a function that kills this process at the point that a file names, `POINT:TIMES`."""
    lock, left = threading.Lock(), list[int]()
    wanted: list[str] = []

    def reached(gate: Headgate, point: str) -> None:
        with lock:
            if not wanted:
                try:
                    name, _, times = armed.read_text().partition(":")
                except FileNotFoundError:
                    return
                wanted.append(name)
                left.append(int(times))
            if point == wanted[0]:
                left[0] -= 1
                if left[0] == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

    return reached
