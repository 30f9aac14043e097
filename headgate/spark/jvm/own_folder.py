"""Folders of this process for rows that pass to the JVM and back, removed at its end."""

import atexit
import fcntl
import os
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

PREFIX = "headgate-rows-"

_TURN = threading.Lock()
_OWN: dict[tuple[int, Path], Path] = {}
"""The folder by process, since a fork has none yet, and parent."""


def own_folder(parent: Path) -> Path:
    """Return this process's folder in another one; only its owner can read it.

    The first call removes the folders of processes that are gone.

    Whoever creates a folder holds a lock on it while the process lives. A process number would not
    do: containers that share /dev/shm count their processes separately.
    """
    key = os.getpid(), parent
    with _TURN:
        folder = _OWN.get(key)
        if folder is None or not folder.is_dir():  # some systems clear /dev/shm at a logout
            sweep(parent)
            folder = _OWN[key] = _created(parent)
        return folder


def sweep(parent: Path) -> None:
    """Remove the folders that processes which are gone have left, in another folder."""
    for folder in parent.glob(f"{PREFIX}*"):
        with suppress(OSError):  # another user's, or just removed
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                if os.fstat(descriptor).st_uid == os.geteuid():
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    _remove(folder)
            finally:
                os.close(descriptor)


def _created(parent: Path) -> Path:
    while True:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
        descriptor = os.open(folder, os.O_RDONLY)  # the lock ends with the process
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if folder.is_dir():
            atexit.register(_remove_own, os.getpid(), folder)
            return folder
        os.close(descriptor)  # another process has swept it before it was locked


def _remove_own(pid: int, folder: Path) -> None:
    if os.getpid() == pid:
        with suppress(OSError):
            _remove(folder)


def _remove(folder: Path) -> None:
    for file in folder.iterdir():
        file.unlink(missing_ok=True)
    folder.rmdir()
