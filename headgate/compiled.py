"""Decorators that compile functions with Numba and cache the machine code on disk.

Numba's own cache checks only the file of a function, so a change to a function that it calls in
another file would go unnoticed. Here the cache folder is named by a hash of all sources that take
part, so a change in any of these packages starts a new folder.

An import reads and writes no cache: the folder is opened when the first function is compiled. If it
cannot be written, every process compiles again.
"""

import hashlib
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar

import numba
from numba import extending, types
from numba.core import caching
from numba.core import config as numba_config
from numba.misc import appdirs

A_DAY_S = 86_400.0
ROOMS = ("metrics", "model", "policies", "scheduler", "simulation", "workloads")
"""Packages that contain compiled functions, or constants that those functions use."""

Function = TypeVar("Function", bound=Callable[..., Any])

config: Any = numba_config  # its attributes are created at run time
caches: Any = appdirs.user_cache_dir
NoCache: Any = caching.NullCache
FileCache: Any = caching.FunctionCache
intrinsic: Any = extending.intrinsic  # untyped


@cache
def _folder() -> str:
    ours = Path(__file__).parent
    digest = hashlib.sha256()
    for room in ROOMS:
        for file in sorted((ours / room).rglob("*.py")):
            digest.update(f"{file.relative_to(ours)}\n".encode() + file.read_bytes())
    digest.update(Path(__file__).read_bytes())
    place = hashlib.sha256(str(ours).encode()).hexdigest()[:8]
    parent = Path(caches("headgate", appauthor=False)) / "compiled" / place
    folder = parent / digest.hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    folder.touch()
    for other in parent.iterdir():
        if other.stat().st_mtime < time.time() - A_DAY_S:  # another process may use a younger one
            shutil.rmtree(other, ignore_errors=True)
    return str(folder)


CACHED: set[Any] = set()
"""Functions of Headgate that are in the cache."""


class _LaterCache(NoCache):  # type: ignore[misc]  # Numba has no types
    """The cache of a function, opened when the function is compiled."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._opened: Any = None

    @property
    def cache_path(self) -> Any:
        return self._cache.cache_path

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        return self._cache.load_overload(sig, target_context)

    def save_overload(self, sig: Any, cres: Any) -> None:
        with suppress(OSError):  # a full disk, for example
            self._cache.save_overload(sig, cres)

    def flush(self) -> None:
        self._cache.flush()

    @property
    def _cache(self) -> Any:
        if self._opened is None:
            before = config.CACHE_DIR
            try:
                config.CACHE_DIR = _folder()
                self._opened = FileCache(self._function)
            except (OSError, RuntimeError):  # Numba's error if no folder can be written
                self._opened = NoCache()
            finally:
                config.CACHE_DIR = before
        return self._opened


def compiled(function: Function) -> Function:
    """Compile a function at its first call; later processes load it from the cache."""
    return _cached(function)


def borrowing(function: Function) -> Function:
    """Compile a function that allocates no array and only borrows those of its caller.

    When a function unpacks a tuple of arrays, Numba counts references up and down again, unless it
    can prove that this has no effect. With ten arrays and a branch it cannot, and the counting took
    400 ns of a decision that takes 10. A function that allocates no array needs no reference
    counts. Division by 0 gives ∞, as in NumPy: a path that raises would count references too.
    """
    return _cached(function, _nrt=False, error_model="numpy")


def inlined(function: Function) -> Function:
    """Compile a function as `borrowing` does, and inline it into every caller.

    A call passes seven words for every array. These are stores, and they queue up behind any store
    that waits for memory; with 100 000 units there usually is one. A loop that calls the function
    in three places contains it three times, so inline only what is short or must not wait.
    """
    return _cached(function, _nrt=False, error_model="numpy", forceinline=True)


def taking_functions(function: Function) -> Function:
    """Compile a function as `borrowing` does, but again in every process.

    Use it for functions that take other functions as arguments, if `with_functions` is no way.
    """
    njit: Any = numba.njit
    dispatcher: Function = njit(_nrt=False, error_model="numpy")(function)
    return dispatcher


def with_functions(template: Any, *, borrows: bool = False, **functions: Any) -> Any:
    """Compile a function in which global names stand for these compiled functions, and cache it.

    Numba cannot cache a function that takes others as arguments. So each combination becomes a
    function of its own, with its own name in the cache. With a function that is not cached itself,
    or not Headgate's, it is compiled again in every process: the cache would not see a change.

    Args:
        borrows: compile as `borrowing` does.
    """
    names = {**template.__globals__, **functions}
    function: Any = FunctionType(template.__code__, names, template.__name__)
    parts = (f"{part.__module__}_{part.__name__}" for part in functions.values())
    function.__qualname__ = "_".join([template.__name__, *parts]).replace(".", "_")
    options: dict[str, Any] = {"_nrt": False, "error_model": "numpy"} if borrows else {}
    if CACHED.issuperset(functions.values()):
        return _cached(function, **options)
    njit: Any = numba.njit
    return njit(**options)(function)


def _cached(function: Function, **options: Any) -> Function:
    njit: Any = numba.njit
    dispatcher: Any = njit(**options)(function)
    dispatcher._cache = _LaterCache(function)
    if function.__module__.startswith("headgate."):
        CACHED.add(dispatcher)
    compiled_function: Function = dispatcher
    return compiled_function


@intrinsic
def from_zero(typing: Any, place: Any) -> Any:
    """Return an array index unchanged, with the promise that it is not negative.

    Numba otherwise checks every index for counting from the end of the array; that check took a
    tenth of the time of a plain simulation.
    """
    if not isinstance(place, types.Integer):
        return None

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        wide = context.cast(builder, arguments[0], place, types.int64)
        builder.assume(builder.icmp_signed(">=", wide, wide.type(0)))
        return wide

    return types.int64(place), generate
