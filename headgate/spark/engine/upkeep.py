"""Upkeep: what an engine looks after twice a second, whether or not events come."""

import logging
import time

from headgate.errors import HeadgateError
from headgate.spark.engine.parts import Parts
from headgate.spark.log.budget import SPARE

log = logging.getLogger("headgate.spark")

EVERY_S = 0.5


class Upkeep:
    """Looks after the JVM, sources, quiet streams, calls, hidden results and memory."""

    def __init__(self, parts: Parts) -> None:
        self._jvm_watch = parts.jvm
        self._ingest, self._store, self._calls = parts.ingest, parts.store, parts.calls
        self._executor, self._budget, self._clock = parts.executor, parts.budget, parts.clock
        self._derived, self._due_at_s = parts.derived, 0.0
        self.failures: list[HeadgateError] = []
        """Why sources have died."""

    @property
    def is_due(self) -> bool:
        return time.monotonic() >= self._due_at_s

    def run(self) -> None:
        """Look after everything once.

        Raises:
            SparkGone: the JVM is gone, and nothing can go on.
        """
        self._jvm_watch.check()
        self._due_at_s = time.monotonic() + EVERY_S
        self._look_after_sources()
        self._ingest.watch()
        for timeline in list(self._store.timelines.values()):
            timeline.tick(self._clock.now_s())
        if self._derived.is_behind:
            self._derived.catch_up()
        self._calls.look_after()
        self._executor.commits.renames.try_again()
        if max(self._budget.memory, self._budget.held) >= SPARE:
            self._store.spare_memory()
            self._executor.windowed.spare_memory()

    def _look_after_sources(self) -> None:
        """Record sources that died. Once all have, the run ends when everything is processed."""
        self._ingest.look_after()
        for failure in self._ingest.failures():
            self.failures.append(failure)
            log.warning("%s", failure)
            if self._ingest.over:
                self._calls.draining = True
