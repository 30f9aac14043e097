"""Who may read the files of a run: their owner, and others only as the settings say."""

import errno
import grp
import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headgate.errors import ConfigRefused


@dataclass(frozen=True)
class Access:
    """The permissions of files and folders that a run creates, whatever the umask.

    Args:
        mode: of files. Who may read a file may also search its folder.
        group: the number of their group; None: that of the process.
    """

    mode: int = 0o600
    group: int | None = None

    @property
    def folder_mode(self) -> int:
        return self.mode | (self.mode & 0o444) >> 2

    @property
    def _folder_bits(self) -> int:
        """The permissions of folders; what Spark creates in them gets their group."""
        return self.folder_mode | (0 if self.group is None else stat.S_ISGID)

    @property
    def umask(self) -> int:
        """The umask of a process whose files get these permissions."""
        return 0o777 & ~self.folder_mode

    def folder(self, path: Path) -> None:
        """Create a folder, with the folders above it; one that exists keeps its permissions."""
        for folder in (*reversed(path.parents), path):
            if not folder.is_dir():
                with suppress(FileExistsError):  # created by another thread
                    folder.mkdir(self.folder_mode)
                    self.apply(folder)
        if not path.is_dir():
            raise NotADirectoryError(f"not a directory: {path}")

    def opener(self, path: str | Path, flags: int) -> int:
        """Open a file, as the `opener` of `open`."""
        descriptor = os.open(path, flags, self.mode)
        with suppress(PermissionError):  # it was there, and belongs to another user
            self._apply(descriptor, self.mode)
        return descriptor

    def write(self, path: Path, data: Any) -> None:
        """Write bytes to a file."""
        with open(path, "wb", opener=self.opener) as file:
            file.write(data)

    def touch(self, path: Path) -> None:
        """Create a file that other code then writes; one that exists gets these permissions."""
        os.close(self.opener(path, os.O_CREAT | os.O_WRONLY))

    def apply(self, path: Path) -> None:
        """Give a file, or a folder and all in it, these permissions."""
        is_folder = path.is_dir()
        for inner in path.iterdir() if is_folder else ():
            self.apply(inner)
        with suppress(PermissionError):  # an executor that runs as another user has written it
            self._apply(path, self._folder_bits if is_folder else self.mode)

    def take_over(self, folder: Path) -> None:
        """Apply to a folder that a run with other settings, or an earlier version, has left."""
        with suppress(OSError):  # missing, or read-only: the next write reports it
            status = folder.stat()
            is_ours = self.group is None or status.st_gid == self.group
            if status.st_mode & 0o777 != self.folder_mode or not is_ours:
                self.apply(folder)

    def _apply(self, target: Path | int, mode: int) -> None:
        if self.group is not None:
            os.chown(target, -1, self.group)
        os.chmod(target, mode)


_FIXES: dict[int | None, str] = {
    errno.ENOSPC: "make room on its disk",
    errno.EDQUOT: "make room in the quota of its disk",
    errno.EMFILE: "let the process open more files (ulimit -n)",
}

PRIVATE = Access()
"""Only the owner may read: secrets, and rows that nobody else needs."""


def access_of(file_mode: str, group: str | None) -> Access:
    """Return the permissions that the settings of these names say.

    Raises:
        ConfigRefused: there is no such group, or this user is not in it.
    """
    if group is None:
        return Access(int(file_mode, 8))
    try:
        number = int(group) if group.isdecimal() else grp.getgrnam(group).gr_gid
    except KeyError as error:
        raise _refused(group, "a group of this machine") from error
    if os.geteuid() and number not in (os.getegid(), *os.getgroups()):
        raise _refused(group, "a group that this user is in")
    return Access(int(file_mode, 8), number)


def sentence_of(error: OSError) -> str:
    """Return what a file or a disk has refused, and the fix.

    >>> print(sentence_of(OSError(28, "No space left on device", "state/log")))
    state/log: no space left on device.
    Fix: make room on its disk
    """
    place = f"{error.filename}: " if error.filename else ""
    reason = (error.strerror or str(error)).lower()
    return (
        f"{place}{reason}.\nFix: {_FIXES.get(error.errno, 'correct the path or its permissions')}"
    )


def _refused(group: str, expected: str) -> ConfigRefused:
    return ConfigRefused(path="settings", key="group", value=group, expected=expected)
