"""How Headgate compiles: Numba, kept on disk under a key made of all sources that take part.

Numba's own cache looks only at the file of a function, so a change in a function that it calls from
another file would go unnoticed. Here a change in any of these rooms makes a new folder.
"""

import hashlib
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba import extending, types
from numba.core import config as numba_config
from numba.misc import appdirs

A_DAY_S = 86_400.0
ROOMS = ("metrics", "model", "policies", "scheduler", "simulation", "workloads")
"""Where compiled functions are, or what they take from."""

Function = TypeVar("Function", bound=Callable[..., Any])

config: Any = numba_config  # sets its names at run time
caches: Any = appdirs.user_cache_dir
intrinsic: Any = extending.intrinsic  # has no type


def _folder() -> str:
    ours = Path(__file__).parent
    digest = hashlib.sha256()
    for room in ROOMS:
        for file in sorted((ours / room).rglob("*.py")):
            digest.update(f"{file.relative_to(ours)}\n".encode() + file.read_bytes())
    digest.update(Path(__file__).read_bytes())
    place = hashlib.sha256(str(ours).encode()).hexdigest()[:8]
    kept = Path(caches("headgate", appauthor=False)) / "compiled" / place
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
    return _kept(function)


def borrowing(function: Function) -> Function:
    """Compiles a function that makes no array, and only borrows those of its caller.

    Where a function unpacks a tuple of arrays, Numba counts references up and down again, unless it
    can prove that this is idle. With ten arrays and a branch it cannot, and the counting took 400
    ns of a decision that takes 10. A function that makes no array needs no counts. Dividing by 0
    gives ∞, as in NumPy: a path that raises would be one more that counts.
    """
    return _kept(function, _nrt=False, error_model="numpy")


def inlined(function: Function) -> Function:
    """Compiles a function as `borrowing` does, and puts it into whoever calls it.

    A call hands over seven words for every array. They are stores, and queue up behind a store that
    waits for memory; with 100 000 units there is mostly one. A loop that calls such a function at
    three places has it three times: so only what is short, or what must not wait, is inlined.
    """
    return _kept(function, _nrt=False, error_model="numpy", forceinline=True)


def taking_functions(function: Function) -> Function:
    """Compiles a function as `borrowing` does, anew in every process.

    For those that get other functions as arguments: Numba cannot keep them.
    """
    njit: Any = numba.njit
    made: Function = njit(_nrt=False, error_model="numpy")(function)
    return made


def _kept(function: Function, **options: Any) -> Function:
    before, config.CACHE_DIR = config.CACHE_DIR, FOLDER
    try:
        njit: Any = numba.njit
        made: Function = njit(cache=True, **options)(function)
    finally:
        config.CACHE_DIR = before
    return made


@intrinsic
def from_zero(typing: Any, place: Any) -> Any:
    """Gives a place in an array as it is, and promises that it does not count from the end.

    Numba asks that of every index, with the length at hand: a tenth of a plain simulation.
    """
    if not isinstance(place, types.Integer):
        return None

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        wide = context.cast(builder, arguments[0], place, types.int64)
        builder.assume(builder.icmp_signed(">=", wide, wide.type(0)))
        return wide

    return types.int64(place), generate
