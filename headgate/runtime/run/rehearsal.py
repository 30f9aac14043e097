"""The rehearsal: new queries are warmed up and measured before the first tuple."""

from collections.abc import Callable, Iterable
from pathlib import Path as File

from headgate.model.network.network import Path
from headgate.model.query import QueryStatistics
from headgate.runtime.recording.statistics_file import recorded_statistics
from headgate.runtime.run.spark_room import LiveEngine


class Rehearsal:
    """The rehearsal of queries that no run has measured, and how far it is.

    Args:
        state: the directory with the statistics that runs have recorded.
        limit_s: how long it may take; 0 for no rehearsal.
    """

    def __init__(self, state: File, limit_s: float) -> None:
        self._state, self._limit_s = state, limit_s
        self.rehearsed_of = (0, 0)
        """How many queries are rehearsed so far, and of how many."""

    def statistics(
        self, engine: LiveEngine, paths: Iterable[Path], progress: Callable[[int, int], None]
    ) -> dict[str, QueryStatistics]:
        """Return the statistics before the first tuple: recorded by runs, else rehearsed.

        Args:
            paths: the paths of all queries.
            progress: called with the number of queries rehearsed and to rehearse.
        """
        recorded = recorded_statistics(self._state)
        if not self._limit_s:
            return recorded
        new = [path for path in paths if path.known_as not in recorded]
        self.rehearsed_of = 0, len(new)

        def report_progress(done: int, total: int) -> None:
            self.rehearsed_of = done, total
            progress(done, total)

        return engine.rehearse(recorded, self._limit_s, report_progress)
