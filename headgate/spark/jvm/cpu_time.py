"""The CPU time that calls take: in the worker's thread, in its thread of the JVM, and in tasks."""

import logging
import threading
import time
from typing import Any

from py4j.clientserver import ClientServer
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from headgate.spark.jvm.errors import cause_of
from headgate.spark.jvm.java_classes import java_class

log = logging.getLogger("headgate.spark")

NO_ANSWER = (Py4JError, OSError)
"""What a call into the JVM raises where Spark differs, or where the JVM is gone. That a JVM is gone
is noticed elsewhere (`jvm_watch`)."""


class CpuTime:
    """A meter of CPU time, for calls that run in threads with a tag for their jobs.

    With PySpark's pinned threads, each thread of Python has a thread of the JVM for itself. Without
    them, or where the class does not compile, nothing can be measured.
    """

    def __init__(self, session: SparkSession) -> None:
        context: Any = session.sparkContext
        self._java: Any = None
        self._last = threading.local()
        if not isinstance(context._gateway, ClientServer):
            return
        try:
            self._java = java_class(session, "CpuTime").newInstance()
            self._java.listen(context._jsc.sc())
        except NO_ANSWER as error:  # another version of Spark
            self._java = None
            log.info("CPU time is not measured: %s", cause_of(error))

    def of_thread_s(self) -> float | None:
        """Return the CPU time of the calling thread and its thread of the JVM; None if unknown."""
        if self._java is None:
            return None
        try:
            self._last.jvm_s = int(self._java.ofThread()) / 1e9
        except NO_ANSWER:
            return None
        return time.thread_time() + float(self._last.jvm_s)

    def at_begin_s(self) -> float | None:
        """Return `of_thread_s` at the begin of a call, without asking the JVM again.

        A worker's thread of the JVM does nothing between two calls.
        """
        if self._java is None or not hasattr(self._last, "jvm_s"):
            return self.of_thread_s()
        return time.thread_time() + float(self._last.jvm_s)

    def of_jobs_s(self, tag: str) -> float:
        """Return the CPU time of the tasks of jobs with a tag since the last call of this."""
        try:
            return int(self._java.ofJobs(tag)) / 1e9 if self._java is not None else 0.0
        except NO_ANSWER:
            return 0.0

    def end(self) -> None:
        """Stop listening to the application."""
        java, self._java = self._java, None
        if java is not None:
            try:
                java.end()
            except NO_ANSWER as error:  # the JVM is gone
                log.debug("%s", error)
