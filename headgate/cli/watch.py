"""Runs of pipelines with a live table, stopped cleanly on Ctrl-C."""

import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime
from io import TextIOWrapper
from pathlib import Path

from rich.console import Console
from rich.live import Live

from headgate.access import PRIVATE
from headgate.cli import page
from headgate.cli.output import tables
from headgate.config import LogFormat, Pipeline
from headgate.metrics.report import Report
from headgate.runtime import Headgate, Spelled, load
from headgate.server import Address, control

DRAIN_S = 120.0

SECOND_S = 1.0
"""A signal is a second one if it comes so long after the first. `timeout`, for example, signals the
process and then its whole group, and means one request."""

talk = Console(stderr=True)


def run_each(
    file: str,
    state: Path,
    policies: Sequence[Spelled],
    seconds: float | None,
    modules: Sequence[str],
    *,
    record: bool = False,
    address: Address | None = None,
) -> list[Report]:
    """Run policies one after the other, each in its own process and therefore its own JVM.

    In one JVM, the first policy would warm it up for the second, which would look faster.

    Args:
        address: where the page and the control API listen; None for no control.

    Raises:
        KeyboardInterrupt: a run was stopped before its time.
    """
    reports = []
    for policy in policies:
        folder = str(state / policy.folder)
        words = ["run", file, "--policy", policy.text, "--state", folder, "--fresh", "--json"]
        words += [word for module in modules for word in ("--module", module)]
        words += ["--record"] * record
        if seconds is not None:
            words += ["--seconds", str(seconds)]
        words += ["--no-control"] if address is None else page.flags_of(address)
        command = [sys.executable, "-m", "headgate.cli", *words]
        child = subprocess.Popen(command, stdout=subprocess.PIPE)
        ended = threading.Event()

        def end(child: subprocess.Popen[bytes] = child, ended: threading.Event = ended) -> None:
            ended.set()
            child.terminate()

        # Ctrl-C reaches the child too; wait for its clean stop instead of exiting first.
        with _interrupts(lambda: None, end):
            printed, _ = child.communicate()
        if child.returncode == 130:
            raise KeyboardInterrupt
        if child.returncode not in (0, 1) or not printed or ended.is_set():
            sys.exit(child.returncode if child.returncode >= 0 else 128 - child.returncode)
        reports += [Report.from_dict(report) for report in json.loads(printed)]
    return reports


def run_one(
    pipeline: Pipeline,
    policy: Spelled,
    *,
    seconds: float | None,
    fresh: bool,
    address: Address | None = None,
    by_option: bool = False,
) -> Report:
    """Run one policy until its time is up, `headgate stop` or Ctrl-C; return its report.

    Args:
        address: where other commands and browsers may query and change the run; None: nowhere.
        by_option: whether the policy was chosen for this run. If not, what requests have put in
            charge in earlier runs stays in charge.

    Raises:
        KeyboardInterrupt: after a clean stop, if Ctrl-C came before the time was up.
    """
    state, name = Path(pipeline.state), policy.text
    _log_to(state / "headgate.log", pipeline.log_format)
    stopped, requested = threading.Event(), threading.Event()

    def stop() -> None:
        requested.set()
        stopped.set()

    try:
        with _interrupts(_raise(KeyboardInterrupt), _raise(_StoppedEarly), at_once=True):
            queries = len(pipeline.queries)
            with talk.status(f"{name}: starting Spark and analyzing {queries} queries"):
                headgate = load(pipeline, policy=name if by_option else None, fresh=fresh)
            # Again, since Spark has set a handler of its own for Ctrl-C.
            with _interrupts(stopped.set, stop, at_once=True):
                controlled = (
                    nullcontext() if address is None else _controlled(headgate, stop, address)
                )
                report = _run(headgate, name, seconds, stopped, controlled)
    except _StoppedEarly:
        talk.print(f"{name}: stopped before the first tuple; a new start resumes")
        if stopped.is_set() and not requested.is_set():
            raise KeyboardInterrupt from None
        sys.exit(0)
    for error in report.errors:
        talk.print(error, style="red", markup=False, soft_wrap=True)
    talk.print(f"{name}: results are in {state / 'results'}", soft_wrap=True)
    if stopped.is_set():
        talk.print(f"{name}: stopped; what is committed is kept, a new start resumes")
        if not requested.is_set():
            raise KeyboardInterrupt
    return report


def _run(
    headgate: Headgate,
    name: str,
    seconds: float | None,
    stopped: threading.Event,
    controlled: AbstractContextManager[None],
) -> Report:
    """Run to the end, and return the report.

    Args:
        controlled: serves the control API, if other commands may use it.
    """
    try:
        # Before the rehearsal, which may take a while: `headgate status` shows its progress.
        with controlled:
            _start(headgate, name, stopped)
            with _live(headgate, name) as refresh:
                _watch(headgate, seconds or float("inf"), stopped, refresh)
    finally:
        try:
            report = headgate.stop()
        finally:
            control.remove(headgate.state)
    assert report is not None
    return report


@contextmanager
def _controlled(headgate: Headgate, stop: Callable[[], None], address: Address) -> Iterator[None]:
    """Serve the page and the control API, so that others can query and change the run."""
    from headgate.server.service import served  # noqa: PLC0415  # importing FastAPI is slow

    with served(headgate, stop, address) as endpoint:
        text = page.invitation(endpoint, headgate.state, signed_in=talk.is_terminal)
        talk.print(text, soft_wrap=True, highlight=False, markup=False)
        yield


class _StoppedEarly(BaseException):
    """The run was stopped before its start was complete."""


def _raise(error: type[BaseException]) -> Callable[[], None]:
    """Return an action that raises an error in the main thread, whatever it is doing there."""

    def action() -> None:
        raise error

    return action


def _start(headgate: Headgate, name: str, stopped: threading.Event) -> None:
    with talk.status(f"{name}: warming up") as status:

        def progress(done: int, total: int) -> None:
            if stopped.is_set():
                raise _StoppedEarly
            status.update(f"{name}: measured {done} of {total} queries")

        headgate.start(progress=progress)


def _watch(
    headgate: Headgate, seconds: float, stopped: threading.Event, refresh: Callable[[], None]
) -> None:
    """Wait while tuples arrive for `seconds` from the first one, then until all are processed.

    Otherwise the report would leave out the tuples that wait longest.
    """
    ended = False
    while not (stopped.is_set() or ended or headgate.report().seconds >= seconds):
        refresh()
        ended = headgate.wait(0.5)
    until_s = time.monotonic() + DRAIN_S
    ended = ended or stopped.is_set() or headgate.drain(0.0)
    while not (stopped.is_set() or ended) and time.monotonic() < until_s:
        refresh()
        ended = headgate.wait(0.5)


@contextmanager
def _live(headgate: Headgate, name: str) -> Iterator[Callable[[], None]]:
    if not talk.is_terminal:
        yield lambda: None
        return
    with Live(console=talk, auto_refresh=False, transient=True) as live:

        def refresh() -> None:
            live.update(tables.live_table(headgate.report(), name), refresh=True)

        yield refresh


@contextmanager
def _interrupts(
    interrupt: Callable[[], None], terminate: Callable[[], None], *, at_once: bool = False
) -> Iterator[None]:
    """Call these on Ctrl-C and SIGTERM for a clean stop; pyspark's handler would cancel all jobs.

    SIGTERM comes from other programs, such as a service manager. Like `headgate stop`, it is not an
    error.

    Args:
        at_once: whether a second signal ends the process, as if there were no handler.
    """
    actions = {signal.SIGINT: interrupt, signal.SIGTERM: terminate}
    first_at_s: float | None = None

    def handle(number: int, frame: object) -> None:
        nonlocal first_at_s
        if first_at_s is None:
            first_at_s = time.monotonic()
        elif time.monotonic() - first_at_s < SECOND_S:
            return
        elif at_once:
            talk.show_cursor()
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        actions[signal.Signals(number)]()

    before = {number: signal.signal(number, handle) for number in actions}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class PrivateFile(logging.FileHandler):
    """A log that only its owner can read."""

    def _open(self) -> TextIOWrapper:
        PRIVATE.touch(Path(self.baseFilename))
        return super()._open()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            super().emit(record)
        except OSError:  # it cannot be opened: the thread that logs goes on
            self.handleError(record)


class JsonLines(logging.Formatter):
    """A JSON object for each event: time, level, logger, message and the trace of an error."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname, "logger": record.name, "message": record.getMessage(),
        }  # fmt: skip
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line)


def _log_to(file: Path, log_format: LogFormat) -> None:
    """Log to a file, which is created with its first line: only when the directory is locked."""
    logging.raiseExceptions = False  # on a full disk, every line of the log would print a trace
    handler, text = PrivateFile(file, delay=True), "%(asctime)s %(levelname)s %(name)s %(message)s"
    handler.setFormatter(JsonLines() if log_format == "json" else logging.Formatter(text))
    logging.basicConfig(handlers=[handler], level=logging.INFO, force=True)
