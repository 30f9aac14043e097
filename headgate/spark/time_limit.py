"""Work that may never end is given so much time, and no more."""

import threading
from collections.abc import Callable
from typing import TypeVar
from uuid import uuid4

from pyspark import SparkContext

from headgate.errors import CallTimedOut

T = TypeVar("T")

GRACE_S = 2.0
"""Work whose jobs were cancelled has so long to come back before it is abandoned."""


def within(context: SparkContext, limit_s: float, work: Callable[[Callable[[], None]], T]) -> T:
    """Gives what work gives, done in a thread of its own.

    When time is up its jobs are cancelled and, should that not help, it is left to itself.

    Args:
        work: calls what it is given, now and then, which raises when the time is up.

    Raises:
        CallTimedOut: it took too long.
    """
    tag, late = f"headgate-{uuid4().hex}", threading.Event()
    made: list[T] = []
    broken: list[BaseException] = []

    def check() -> None:
        if late.is_set():
            raise CallTimedOut(limit_s=limit_s)

    def run() -> None:
        context.addJobTag(tag)
        try:
            made.append(work(check))
        except BaseException as error:
            broken.append(error)

    thread = threading.Thread(target=run, name="headgate-patience", daemon=True)
    thread.start()
    thread.join(limit_s)
    if thread.is_alive():
        late.set()
        context.cancelJobsWithTag(tag)
        thread.join(GRACE_S)
        raise CallTimedOut(limit_s=limit_s)
    if broken:
        raise broken[0]
    return made[0]
