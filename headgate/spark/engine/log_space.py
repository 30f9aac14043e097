"""Space in the log: trains that nobody needs any more are removed."""

import logging
import sqlite3
import time
from math import inf

from headgate.spark.engine.changes import Changes
from headgate.spark.engine.parts import Parts
from headgate.spark.log.budget import SLOW_DOWN

log = logging.getLogger("headgate.spark")

WARN_EVERY_S = 60.0


class LogSpace:
    """Frees space in the log.

    Args:
        changes: new queries, which begin with the oldest train.
    """

    def __init__(self, parts: Parts, changes: Changes) -> None:
        self._members, self._store = parts.members, parts.store
        self._changes, self._budget, self._clock = changes, parts.budget, parts.clock
        self.retention_s = parts.settings.retention_s
        """How long trains stay in the log once every consumer has passed them."""
        self._warn_at_s = 0.0

    def forget(self, stream: int, passed: int) -> None:
        """Drop trains that every consumer has passed and that retention no longer keeps.

        When the log fills up, trains that are passed are dropped whatever their age.
        """
        name = self._members.streams[stream].name
        # inf, not now_s: a train may seem to be from the future if clocks were set back.
        fills_up = self._budget.log >= SLOW_DOWN
        before_s = inf if fills_up else self._clock.now_s() - self.retention_s
        paths = self._members.paths
        hidden = [path.into or "" for path in paths if path.first_of and path.stream == name]
        first_of = next((path.first_of for path in paths if path.into == name), None)
        if self._changes.query_is_coming:
            return  # it begins with the oldest train, and `passed` does not count it
        try:
            self._store.drop(name, passed, before_s, first_of, hidden)
        except (sqlite3.Error, OSError) as error:
            self.warn(error)

    def warn(self, error: Exception) -> None:
        """Warn of a full disk, for example, once a minute at most; the loop goes on."""
        if time.monotonic() >= self._warn_at_s:
            self._warn_at_s = time.monotonic() + WARN_EVERY_S
            log.warning("the state directory cannot be written, and is tried again: %s", error)
