"""A chain: one state directory that goes through faults, with its input, its runs and its JVM."""

import shutil
import signal
import sqlite3
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from chaos.pipeline import Differences, World
from chaos.runs import Jvm, Run
from headgate.errors import HeadgateError
from headgate.spark.journal.cursors import Cursors
from headgate.spark.journal.journal import Journal

PARTS = ("delivered", "filtered", "queued", "shed", "missed", "late", "dead_lettered")
RECEIPTS = Path(__file__).with_name("receipts.py")
SETTLE_S = 90.0
LOOK_EVERY_S = 0.05


class Wrong(Exception):
    """What happened after a fault is not what Headgate promises."""


class Chain:
    """A state directory, and how to run it, disturb it and check it.

    Args:
        jvm: the JVM that all runs use; without one each run starts its own.
        state: the state directory, if it is on a disk of its own.
        small_memory: whether each run has a small shared memory of its own.
    """

    def __init__(
        self,
        folder: Path,
        world: World,
        *,
        jvm: Jvm | None,
        state: Path | None = None,
        small_memory: bool = False,
    ) -> None:
        self.folder, self.world, self.state = folder, world, state or folder / "state"
        self._jvm, self._small_memory = jvm, small_memory
        self._offered: Mapping[str, int] = {}
        self._run: Run | None = None
        self.refusals = 0

    @property
    def run(self) -> Run:
        assert self._run is not None
        return self._run

    @property
    def is_alive(self) -> bool:
        return self._run is not None and self._run.process.exitcode is None

    def offer(self, files: int = 2) -> None:
        """Give every stream more files."""
        self._offered = self.world.offer(files)

    def begin(self) -> Run:
        """Start a run and return at once. It resumes what the runs before it have left."""
        if self._jvm is not None:
            self._jvm.clear()
        self._file = self.world.write(self.state, self.versions())
        self._run = self.other()
        return self._run

    def other(self, *words: str) -> Run:
        """Start a process that runs the same file on the same state directory."""
        return Run(
            ("run", str(self._file), "--module", str(RECEIPTS), *words), self.state,
            self.folder / "printed", jvm=self._jvm, armed=self.folder / "armed",
            small_memory=self._small_memory,
        )  # fmt: skip

    def resume(self) -> None:
        """Make sure that a run is there and ready."""
        if not self.is_alive and not self.begin().ready():
            raise Wrong(f"the next run ended with {self.run.process.exitcode}: {self._last_line()}")

    def arm(self, point: str, times: int = 1) -> None:
        """Have the run, or the next one, kill itself at a point."""
        (self.folder / "new-armed").write_text(f"{point}:{times}")
        (self.folder / "new-armed").rename(self.folder / "armed")

    def dies(self, timeout_s: float) -> bool:
        """Wait for the run's death, at most `timeout_s`; return True if it is dead."""
        if not self.run.ended(timeout_s):
            return False
        (self.folder / "armed").unlink(missing_ok=True)
        if self.run.process.exitcode != -signal.SIGKILL:
            raise Wrong(f"the run ended with {self.run.process.exitcode}: {self._last_line()}")
        return True

    def offer_until_death(self, files: int = 2, waves: int = 6) -> None:
        """Offer files until the run dies at the point for which it is armed."""
        for _ in range(waves):
            self.offer(files)
            if self.dies(5.0):
                return
        raise Wrong("the run never reached its point")

    def close(self) -> None:
        if self._run is not None:
            self._run.kill()

    def is_locked(self) -> bool:
        """Return True if the run has locked the state directory: from then on it hears signals."""
        try:
            return f'"pid": {self.run.pid},' in (self.state / "lock").read_text()
        except FileNotFoundError:
            return False

    def status(self) -> dict[str, Any]:
        return self.run.client.status()

    def states(self) -> dict[str, str]:
        return {row["query"]: row["state"] for row in self.status()["queries"]}

    def wait(
        self, holds: Callable[[], Any], what: str, timeout_s: float = 60.0,
        progress: Callable[[], object] = lambda: None,
    ) -> None:  # fmt: skip
        """Wait until something holds; the run must live meanwhile.

        Args:
            timeout_s: how long the value of `progress` may stay the same: on a busy machine all
                takes longer.
        """
        ends_at_s, before = time.monotonic() + timeout_s, progress()
        while not holds():
            if (now := progress()) != before:
                ends_at_s, before = time.monotonic() + timeout_s, now
            if not self.is_alive:
                raise Wrong(f"the run ended before {what}: {self._last_line()}")
            if time.monotonic() > ends_at_s:
                raise Wrong(f"{what}: not within {timeout_s:g} s")
            self.run.ended(LOOK_EVERY_S)

    def repair(self) -> None:
        """Restart all queries that have failed."""
        for name, state in self.states().items():
            if state == "FAILED":
                self.run.client.repair(name, "restart")

    def settle(self) -> None:
        """Wait until the run has done all that it was offered, and check its accounts."""
        unsettled = [""]

        def is_settled() -> bool:
            unsettled[0] = self._unsettled()
            return not unsettled[0]

        try:
            what = "all tuples are processed"
            self.wait(is_settled, what, SETTLE_S, progress=lambda: unsettled[0])
        except Wrong as wrong:
            raise Wrong(f"{wrong}; {unsettled[0]}") from wrong

    def _unsettled(self) -> str:
        """Return what the run still has to do; nothing if it is done."""
        for row in self.status()["queries"]:
            name, account = row["query"], row["account"]
            if row["state"] == "FAILED":
                raise Wrong(f"query '{name}' has failed: {row['cause']}")
            if account is None or account["arrived"] < self._offered[name] or account["queued"]:
                return f"{name}: {account} of {self._offered[name]}"
            _check_account(name, account)
            if account["arrived"] > self._offered[name] or account["missed"] or account["shed"]:
                raise Wrong(f"{name}: {account} of {self._offered[name]} tuples offered")
        for folder in (self.state / "outbox", *self.state.glob("results/*/_collected")):
            if waiting := [file for file in folder.rglob("*.parquet") if file.is_file()]:
                return f"{len(waiting)} results in {folder}"
        with closing(self._reader()) as db:
            ((intents,),) = db.execute("SELECT count(*) FROM intents").fetchall()
        return f"{intents} results without their final names" if intents else ""

    def check_journal(self) -> None:
        """Check the journal as the fault has left it: its pages and the accounts of all queries.

        The journal of a dead run is copied first, as to open it would change it.
        """
        if self.is_alive:
            with closing(self._reader()) as db:
                _check_pages(db)
            return
        with tempfile.TemporaryDirectory(dir=self.folder) as name:
            for file in self.state.glob("journal.*"):
                if not file.name.endswith("-shm"):
                    shutil.copy(file, name)
            if not (Path(name) / "journal.db").exists():
                return
            journal = Journal(Path(name))
            try:
                for query, account in Cursors(journal).accounts().items():
                    _check_account(query, vars(account))
            finally:
                journal.close()
            with closing(sqlite3.connect(Path(name) / "journal.db")) as db:
                _check_pages(db)

    def versions(self) -> dict[str, int]:
        """Return how many texts each query has had, as far as it has run."""
        if not (self.state / "journal.db").exists():
            return {}
        try:
            with closing(self._reader()) as db:
                return dict(db.execute("SELECT query, version FROM cursors"))
        except sqlite3.OperationalError:  # a start was killed before it had created the tables
            return {}

    def differences(self) -> Differences:
        return self.world.differences(self.state, self.versions())

    def _reader(self) -> sqlite3.Connection:
        return sqlite3.connect(f"file:{self.state}/journal.db?mode=ro", uri=True, timeout=10)

    def _last_line(self) -> str:
        return (self.run.printed.strip().splitlines() or ["it printed nothing"])[-1]


def refused(act: Callable[[], object]) -> str:
    """Make a request; return why Headgate refuses it, or that the run has ended meanwhile."""
    try:
        act()
    except HeadgateError as error:
        return str(error)
    return ""


def _check_pages(db: sqlite3.Connection) -> None:
    answers = [line for (line,) in db.execute("PRAGMA integrity_check")]
    if answers != ["ok"]:
        raise Wrong(f"PRAGMA integrity_check: {answers}")


def _check_account(name: str, account: Mapping[str, int]) -> None:
    if account["arrived"] != sum(account[part] for part in PARTS):
        raise Wrong(f"the account of {name} does not add up: {account}")
