"""Small file systems, which fill up and can be read-only."""

import contextlib
import subprocess
from pathlib import Path


def mount(folder: Path, size: str) -> bool:
    """Mount a small file system; return False if this process may not."""
    folder.mkdir(parents=True, exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def remount(folder: Path, mode: str) -> None:
    """Make a small file system read-only (`ro`) or writable (`rw`)."""
    subprocess.run(["mount", "-o", f"remount,{mode}", str(folder)], check=True)


def unmount(folder: Path) -> None:
    subprocess.run(["umount", "-l", str(folder)], capture_output=True, check=False)


def fill(folder: Path) -> Path:
    """Fill the disk of a folder with a file; return the file."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))
    return ballast
