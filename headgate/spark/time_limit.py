"""A time limit for work that may never end."""

import threading
from collections.abc import Callable
from typing import TypeVar
from uuid import uuid4

from pyspark import SparkContext

from headgate.errors import CallTimedOut

T = TypeVar("T")

GRACE_S = 2.0
"""How long work whose jobs were cancelled may take to return before it is abandoned."""


def within(context: SparkContext, limit_s: float, work: Callable[[Callable[[], None]], T]) -> T:
    """Run work in a thread of its own and return its result.

    When the time is up, the jobs of the work are cancelled. If that does not help, the work is
    abandoned.

    Args:
        work: receives a function to call now and then, which raises once the time is up.

    Raises:
        CallTimedOut: the work took too long.
    """
    tag, late = f"headgate-{uuid4().hex}", threading.Event()
    results: list[T] = []
    errors: list[BaseException] = []

    def check() -> None:
        if late.is_set():
            raise CallTimedOut(limit_s=limit_s)

    def run() -> None:
        context.addJobTag(tag)
        try:
            results.append(work(check))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, name="headgate-patience", daemon=True)
    thread.start()
    thread.join(limit_s)
    if thread.is_alive():
        late.set()
        context.cancelJobsWithTag(tag)
        thread.join(GRACE_S)
        raise CallTimedOut(limit_s=limit_s)
    if errors:
        raise errors[0]
    return results[0]
