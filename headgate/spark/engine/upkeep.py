"""Upkeep: what an engine looks after twice a second, whether or not events come."""

import logging
import time

from headgate.errors import HeadgateError
from headgate.spark.clock import Clock
from headgate.spark.engine.calls import Calls
from headgate.spark.engine.executor import Executor
from headgate.spark.event_time.store import Store
from headgate.spark.log.budget import SPARE, Budget
from headgate.spark.sources.ingest import StreamIngest

log = logging.getLogger("headgate.spark")

EVERY_S = 0.5


class Upkeep:
    """Looks after sources, quiet streams, calls, hidden results and memory."""

    def __init__(
        self,
        intake: StreamIngest,
        store: Store,
        calls: Calls,
        executor: Executor,
        budget: Budget,
        clock: Clock,
    ) -> None:
        self._intake, self._store, self._calls = intake, store, calls
        self._executor, self._budget, self._clock = executor, budget, clock
        self._due_at_s = 0.0
        self.failures: list[HeadgateError] = []
        """Why sources have died."""

    @property
    def is_due(self) -> bool:
        return time.monotonic() >= self._due_at_s

    def run(self) -> None:
        """Look after everything once."""
        self._due_at_s = time.monotonic() + EVERY_S
        self._look_after_sources()
        for timeline in list(self._store.timelines.values()):
            timeline.tick(self._clock.now_s())
        self._calls.look_after()
        self._executor.commits.renames.try_again()
        if max(self._budget.memory, self._budget.held) >= SPARE:
            self._store.spare_memory()
            self._executor.windowed.spare_memory()

    def _look_after_sources(self) -> None:
        """Record sources that died. Once all have, the run ends when everything is processed."""
        for failure in self._intake.failures():
            self.failures.append(failure)
            log.warning("%s", failure)
            if self._intake.over:
                self._calls.draining = True
