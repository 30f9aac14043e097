"""How a selection with much memory is compiled: it borrows its arrays and never counts them.

A selection's memory is a tuple of arrays. Where a function unpacks it, Numba counts the references
up and down again, unless it can prove that this is idle; with ten arrays and a branch it cannot, and
the counting takes 400 ns of a decision that takes 10. A function that only reads and writes the
arrays of its caller, and makes none of its own, needs no counts.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numba
from numba.core import config

from headgate.compiled import FOLDER

Function = TypeVar("Function", bound=Callable[..., Any])


def borrowing(function: Function) -> Function:
    """Compiles a function that makes no array; kept on disk as `compiled` does."""
    before, config.CACHE_DIR = config.CACHE_DIR, FOLDER
    try:
        # Dividing by 0 gives ∞ as NumPy does: a path that raises is one more that counts.
        made: Function = numba.njit(cache=True, _nrt=False, error_model="numpy")(function)
    finally:
        config.CACHE_DIR = before
    return made
