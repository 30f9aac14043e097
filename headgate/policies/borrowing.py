"""How the inside of a compiled selection is compiled: it borrows its arrays and never counts them.

A selection's memory is a tuple of arrays. Where a function unpacks it, Numba counts the references
up and down again, unless it can prove that this is idle; with ten arrays and a branch it cannot, and
the counting takes 400 ns of a decision that takes 10. A function that only reads and writes the
arrays of its caller, and makes none of its own, needs no counts.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def borrowing(function: Function) -> Function:
    """Compiles a function that makes no array, as a part of the compiled function that calls it."""
    made: Function = numba.njit(_nrt=False, error_model="numpy")(function)
    return made
