"""The state directory of a Headgate: locked by one at a time, and emptied for a fresh start."""

import fcntl
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TextIO

from headgate.access import PRIVATE, Access
from headgate.errors import RecoveryRefused

LOCK, JOURNAL, GENERATION = "lock", "journal.db", "journal.generation"

BEFORE = ".before-"
"""The beginning of the names of folders with what a fresh start has set aside."""

OF_THE_PROCESS = {
    LOCK, "control.json", ".control.json", "open.html", ".open.html", "headgate.log",
    "spark.log", "log4j2.properties", "warehouse",
}  # fmt: skip
"""Files that a process writes before its run starts; a fresh start keeps them."""


@dataclass(frozen=True)
class Holder:
    """The process that has locked a state directory."""

    pid: int
    since: datetime

    @classmethod
    def of(cls, text: str) -> "Holder | None":
        """Return the holder that a lock file names; None if it names none."""
        try:
            holder = json.loads(text)
            return cls(holder["pid"], datetime.fromtimestamp(holder["since_s"]).astimezone())
        except (ValueError, KeyError, TypeError):
            return None

    def __str__(self) -> str:
        return f"process {self.pid}, which has used it since {self.since.isoformat(' ', 'seconds')}"


def holder_of(state: Path) -> Holder | None:
    """Return the process that has locked a state directory; None if it is free."""
    try:
        holder = Holder.of((state / LOCK).read_text())
    except (OSError, ValueError):
        return None
    return holder if holder is not None and is_alive(holder.pid) else None


def is_alive(pid: int) -> bool:
    """Return True if there is a process of this number."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # the process lives, and belongs to another user
    return True


class StateFolder:
    """The state directory, which one Headgate holds from before Spark starts to its end.

    Args:
        fresh: whether the run begins without what an earlier one has left.
        access: who may read the directory.
    """

    def __init__(self, path: Path, *, fresh: bool = False, access: Access = PRIVATE) -> None:
        self.path, self.fresh, self._access = path, fresh, access
        self._lock: TextIO | None = None
        self._aside: Path | None = None

    def take(self) -> None:
        """Lock the directory, unless this object has locked it already.

        Raises:
            RecoveryRefused: another Headgate holds it, or it cannot be written; or a fresh start is
                wanted, and it has files that are not Headgate's.
        """
        if self._lock is not None:
            return
        if self.fresh:
            self._refuse_foreign()
        try:
            self._access.folder(self.path)
            file = open(self.path / LOCK, "a+", opener=self._access.opener)  # noqa: SIM115  # held until `release`
        except OSError as error:
            raise RecoveryRefused(
                subject=f"state directory {self.path}",
                expected="a directory that Headgate can write to",
                found=error.strerror or str(error),
                fix="make it writable, or choose another `state`",
            ) from error
        try:
            # The file is never removed: a lock belongs to the file, not to its name.
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            with file:
                raise self._refusal(file) from error
        file.truncate(0)
        json.dump({"pid": os.getpid(), "since_s": time.time()}, file)
        file.flush()
        self._lock = file

    def release(self) -> None:
        """Unlock the directory, if this object has locked it."""
        if self._lock is not None:
            self._lock.truncate(0)
            self._lock.close()
            self._lock = None

    @contextmanager
    def for_start(self) -> Iterator[None]:
        """Hold the directory from a start on; if the start is refused, leave all as it was.

        Raises:
            RecoveryRefused: as `take` and `set_aside` do.
        """
        self.take()
        try:
            self.set_aside()
            yield
        except BaseException:
            self.restore()
            self.release()
            raise
        self.discard()

    def set_aside(self) -> None:
        """For a fresh start, move what an earlier run has left out of the way.

        It is deleted once the start has succeeded (`discard`); until then `restore` undoes this.
        """
        if not self.fresh or not (names := self._names()):
            return
        aside = Path(tempfile.mkdtemp(prefix=BEFORE, dir=self.path))
        try:
            # The journal first: if this process is killed here, no start takes the rest for whole.
            for name in sorted(names, key=lambda name: not name.startswith(JOURNAL)):
                (self.path / name).rename(aside / name)
        except OSError as error:
            self._bring_back(aside)
            raise RecoveryRefused(
                subject=f"state directory {self.path}",
                expected="files that can be set aside for a fresh start",
                found=f"that {name} cannot be moved: {error.strerror}",
                fix="empty the directory yourself, except for the file `lock`",
            ) from error
        self._aside = aside

    def restore(self) -> None:
        """Undo `set_aside`: the start was refused."""
        if self._aside is None:
            return
        for name in self._names() - {self._aside.name}:
            _delete(self.path / name)
        self._bring_back(self._aside)
        self._aside = None

    def discard(self) -> None:
        """Delete what was set aside: the start has succeeded."""
        for path in self.path.glob(f"{BEFORE}*"):
            shutil.rmtree(path, ignore_errors=True)
        self._aside = None

    def _bring_back(self, aside: Path) -> None:
        names = {path.name for path in aside.iterdir()}
        for name in sorted(names, key=lambda name: name.startswith(JOURNAL)):
            (aside / name).rename(self.path / name)
        aside.rmdir()

    def _names(self) -> set[str]:
        """Return what is in the directory, except the files of the process."""
        if not self.path.is_dir():
            return set()
        return {path.name for path in self.path.iterdir()} - OF_THE_PROCESS

    def _refuse_foreign(self) -> None:
        names = self._names()
        ours = {JOURNAL, GENERATION} & names or any(name.startswith(BEFORE) for name in names)
        if names and not ours:
            raise RecoveryRefused(
                subject=f"state directory {self.path}",
                expected="a Headgate journal in a folder that is to be emptied",
                found="files that are not Headgate's",
                fix="choose another `state`, or empty the folder yourself",
            )

    def _refusal(self, file: TextIO) -> RecoveryRefused:
        """Return the refusal of a directory that another Headgate holds, by its lock file."""
        stop = f"`headgate stop --state {self.path}`"
        file.seek(0)
        holder = Holder.of(file.read())
        if holder is None:
            other = "another one"  # it has only just locked the directory
        elif holder.pid == os.getpid():
            other, stop = f"another one in this {holder}", "its method stop"
        else:
            other = f"that of {holder}"
            stop += f" (or `kill {holder.pid}`, if it has no control API)"
        return RecoveryRefused(
            subject=f"state directory {self.path}",
            expected="no other Headgate that uses it",
            found=other,
            fix=f"stop the other one with {stop}, or give this one another state directory",
        )


def _delete(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
