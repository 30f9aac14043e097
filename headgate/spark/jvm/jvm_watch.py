"""Whether the JVM of a session still runs."""

import select
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

from headgate.errors import HeadgateError, SparkGone
from headgate.spark.jvm.session import forget_jvm

GRACE_S = 0.2
"""How long after an error the end of the JVM may become known."""


@contextmanager
def noticed_end() -> Iterator[None]:
    """Raise SparkGone in place of an error that the end of the JVM has caused, before a run."""
    try:
        yield
    except Exception as error:
        if isinstance(error, SparkGone) or not _does_not_listen(
            0.0 if isinstance(error, HeadgateError) else GRACE_S
        ):
            raise
        forget_jvm()
        raise SparkGone from error


def _does_not_listen(within_s: float) -> bool:
    """Return True if the JVM of this process is gone; wait up to `within_s` for that."""
    gateway: Any = SparkContext._gateway
    if gateway is None:
        return False  # none has begun to answer: the refusal says why
    server, ends_at_s = gateway.gateway_parameters, time.monotonic() + within_s
    while True:
        try:
            socket.create_connection((server.address, server.port), timeout=5).close()
        except ConnectionRefusedError:
            return True
        except OSError:
            return False  # it is busy, for example
        if time.monotonic() >= ends_at_s:
            return False
        time.sleep(GRACE_S / 4)


class JvmWatch:
    """Notices when the JVM of a session is gone.

    It holds a connection that the system closes with the JVM, and never sends anything. A call
    would have to wait for a JVM that is busy, for example with its garbage.
    """

    def __init__(self, session: SparkSession) -> None:
        gateway: Any = session.sparkContext._gateway
        server = gateway.gateway_parameters
        self._connection = socket.create_connection((server.address, server.port), timeout=5)
        self._events = select.poll()
        self._events.register(self._connection, select.POLLIN)

    def is_gone(self, within_s: float = 0.0) -> bool:
        """Return True if the JVM is gone; wait up to `within_s` for that."""
        return bool(self._events.poll(within_s * 1000))

    def check(self) -> None:
        """Raise SparkGone if the JVM is gone."""
        if self.is_gone():
            raise SparkGone

    def cause_of(self, error: BaseException) -> BaseException:
        """Return what caused an error: SparkGone if the JVM is gone, otherwise the error itself."""
        return SparkGone() if self.is_gone(GRACE_S) else error

    def close(self) -> None:
        self._events.unregister(self._connection)
        self._connection.close()
