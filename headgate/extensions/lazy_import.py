"""Functions that are imported at the first call: a declaration must not import Spark."""

from collections.abc import Callable
from importlib import import_module
from typing import Any


def lazy_import(reference: str) -> Callable[[Any], Any]:
    """Return a function that imports another one, or a class, when it is called.

    Args:
        reference: written as in an entry point, MODULE:NAME.

    >>> lazy_import("math:sqrt")(9)
    3.0
    """
    module, _, name = reference.partition(":")

    def call(argument: Any) -> Any:
        return getattr(import_module(module), name)(argument)

    return call
