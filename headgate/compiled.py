"""How Headgate compiles: Numba, kept on disk under a key made of all our sources.

Numba's own cache looks only at the file of a function, so a change in a function that it calls from
another file would go unnoticed. Here any change of any file of ours makes a new folder.
"""

import hashlib
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core import config
from numba.misc.appdirs import AppDirs

A_DAY_S = 86_400.0

Function = TypeVar("Function", bound=Callable[..., Any])


def _folder() -> str:
    ours = Path(__file__).parent
    digest = hashlib.sha256()
    for file in sorted(ours.rglob("*.py")):
        digest.update(f"{file.relative_to(ours)} {file.stat().st_mtime_ns}\n".encode())
    place = hashlib.sha256(str(ours).encode()).hexdigest()[:8]
    kept = Path(AppDirs("headgate", appauthor=False).user_cache_dir) / "compiled" / place
    folder = kept / digest.hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    folder.touch()
    for other in kept.iterdir():
        if other.stat().st_mtime < time.time() - A_DAY_S:  # another process may use a younger one
            shutil.rmtree(other, ignore_errors=True)
    return str(folder)


FOLDER = _folder()


def compiled(function: Function) -> Function:
    """Compiles a function when it is first called; the next process finds it compiled."""
    before, config.CACHE_DIR = config.CACHE_DIR, FOLDER
    try:
        made: Function = numba.njit(cache=True)(function)
    finally:
        config.CACHE_DIR = before
    return made
