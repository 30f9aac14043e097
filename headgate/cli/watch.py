"""Runs pipelines with a live table, and stops them cleanly on Ctrl-C."""

import logging
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.live import Live

from headgate.cli import tables
from headgate.config import Pipeline
from headgate.errors import RecoveryRefused
from headgate.runtime import Headgate, Report, load

DRAIN_S = 120.0
talk = Console(stderr=True)


def run_watched(
    pipeline: Pipeline, names: Sequence[str], *, seconds: float | None, fresh: bool
) -> list[Report]:
    """Runs the policies one after the other and gives their reports.

    Raises:
        KeyboardInterrupt: after a clean stop, when it was asked for before the time was up.
    """
    reports: list[Report] = []
    for name in names:
        state = Path(pipeline.state)
        if len(names) > 1:
            state = state / name
        if fresh:
            _empty(state)
        state.mkdir(parents=True, exist_ok=True)
        _log_to(state / "headgate.log")
        report = _run_one(pipeline, name, state, seconds)
        reports.append(report)
        talk.print(f"results: {state / 'results'}", soft_wrap=True)
        for error in report.errors:
            talk.print(str(error), style="red", markup=False, soft_wrap=True)
    return reports


def _run_one(pipeline: Pipeline, name: str, state: Path, seconds: float | None) -> Report:
    with talk.status(f"{name}: starting Spark and analysing {len(pipeline.queries)} queries"):
        headgate = load(pipeline, policy=name, state=state)
    stopped = threading.Event()
    with _interrupts(stopped):
        try:
            _start(headgate, name)
            with _live(headgate, name) as refresh:
                until_s = time.monotonic() + (seconds or float("inf"))
                while not stopped.is_set() and time.monotonic() < until_s and not headgate.wait(0.5):
                    refresh()
                if not stopped.is_set():
                    _drain(headgate, stopped, refresh)
        finally:
            report = headgate.stop()
    if stopped.is_set():
        talk.print(f"{name}: stopped; everything committed is kept, a new start resumes.")
        if seconds is not None:
            raise KeyboardInterrupt
    assert report is not None
    return report


def _start(headgate: Headgate, name: str) -> None:
    with talk.status(f"{name}: warming up") as status:
        headgate.start(
            progress=lambda done, of: status.update(f"{name}: measured {done} of {of} queries")
        )


def _drain(headgate: Headgate, stopped: threading.Event, refresh: Callable[[], None]) -> None:
    """Lets what has arrived be finished, so that no tuple's wait is left out of the report."""
    until_s = time.monotonic() + DRAIN_S
    done = headgate.drain(0.0)
    while not done and not stopped.is_set() and time.monotonic() < until_s:
        refresh()
        done = headgate.wait(0.5)


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
def _interrupts(stopped: threading.Event) -> Iterator[None]:
    """Makes Ctrl-C ask for a clean stop; pyspark's own handler would cancel every job."""
    before = signal.signal(signal.SIGINT, lambda number, frame: stopped.set())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _empty(state: Path) -> None:
    if not state.exists() or not any(state.iterdir()):
        return
    if not (state / "journal.db").exists():
        raise RecoveryRefused(
            subject=f"state directory {state}",
            expected="a Headgate journal in a folder that is to be emptied",
            found="files of somebody else",
            fix="choose another `state`, or empty the folder yourself",
        )
    shutil.rmtree(state)


def _log_to(file: Path) -> None:
    logging.basicConfig(
        filename=file, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", force=True
    )
