"""Repairs while an engine runs: queries are restarted, or get another text."""

import logging

from headgate.errors import QueryRefused
from headgate.model.events import Event
from headgate.model.network.network import Network, Path
from headgate.spark.engine.changes import Changes
from headgate.spark.engine.parts import Parts
from headgate.spark.engine.recovery import refuse_old_results, resumed
from headgate.spark.journal.cursors import Cursors

log = logging.getLogger("headgate.spark")


class Repairs:
    """Restarts and alters queries that are quiet (`Changes.quiet_query`); others keep running."""

    def __init__(self, parts: Parts, changes: Changes) -> None:
        self._parts, self._changes = parts, changes
        self._members, self._journal, self._store = parts.members, parts.journal, parts.store
        self._executor, self._sinks = parts.executor, parts.sinks

    def alter_query(self, network: Network, unit: int, new: int, budget_s: float) -> None:
        """Replace a query that is quiet by its next version, and time that alone first.

        Args:
            network: the network with the next version in place of the query.
            unit, new: the ids of the query's last unit and of the next version's only one.

        Raises:
            QueryRefused: it cannot continue where it stands; the query is as it was, and quiet.
        """
        path = self._members.path_of(unit)
        sink = self._sinks[path.query.name]
        sink.settle()
        hidden = self._executor.commits.renames.hides(path.query.name)
        hidden |= sink.collected is not None and bool(sink.collected.waiting())
        if sink.waiting_bytes or hidden:
            raise QueryRefused(
                query=path.query.name, clause="sink", reason="has not taken all results yet",
                fix="alter the query once they have arrived",
            )  # fmt: skip
        sink.close()
        self._parts.reached("version closed")
        self._executor.forget(path.query.name)
        segments = self._members.segments_of(unit)
        others = self._members.network.only(self._members.network.places.keys() - set(segments))
        # Else the next version would find the plans of this one.
        self._changes.arrange(others.paths)
        self._changes.add_query(
            network, [new], budget_s, {}, lambda path: self._make_way(unit, path)
        )
        self._parts.reached("version begun")

    def restart_query(self, unit: int) -> None:
        """Start a query that is quiet again, where it stands, with a new sink and new plans."""
        members = self._members
        segments = members.segments_of(unit)
        paths = [members.path_of(segment) for segment in segments]
        refuse_old_results(self._journal, paths[-1:])
        name = paths[-1].query.name
        self._refuse_away(name)
        sink = self._sinks.create(paths[-1])
        self._sinks.unusable.pop(name, None)
        if (old_sink := self._sinks.pop(name, None)) is not None:
            old_sink.close()
        self._parts.reached("sink replaced")
        self._sinks[name] = sink
        self._executor.forget(name)
        self._executor.arrangement.readmit(name)
        self._changes.arrange(members.paths)

        def change() -> list[Event]:
            cursors = {}
            for segment, path in zip(segments, paths, strict=True):
                cursors[segment] = resumed(path, members.network, self._journal, self._store)
                self._store.keep_for(path)
                self._parts.calls.attempts.pop(segment, None)
                timeline = self._store.timelines.get(path.stream)
                if timeline is not None and not timeline.keeps(path.kind, cursors[segment]):
                    log.warning(
                        "query '%s' was away too long: its open windows lack tuples that retention"
                        " has dropped", name,
                    )  # fmt: skip
            Cursors(self._journal).pause(name, False)
            self._parts.reached("query resumed")
            self._executor.commits.renames.hand_to(name, sink)
            sink.resume()
            self._parts.publisher.adopt(name)
            self._changes.unplanned.difference_update(segments)
            return [self._changes.switch(members.network, cursors, {}, {})]

        self._parts.requests.ask(change)

    def _refuse_away(self, query: str) -> None:
        """Refuse to make a folder again while results that it holds wait to be made visible."""
        sink = self._sinks.get(query)
        if sink is None or sink.folder.is_dir() or not self._executor.commits.renames.hides(query):
            return
        raise QueryRefused(
            query=query, clause=f"sink path {str(sink.folder)!r}",
            reason="is away, with results that are committed and not visible yet",
            fix="restore the directory, or create an empty one to give up what it held",
        )  # fmt: skip

    def _make_way(self, unit: int, new: Path) -> None:
        """Release what the version of a query holds that another one replaces."""
        segments = self._members.segments_of(unit)
        query, timeline = new.query.name, self._store.timelines.get(new.stream)
        if new.since_s is None and timeline is not None:
            cursor = Cursors(self._journal).train_of(query)
            if not timeline.keeps(new.kind, cursor or 0):
                raise QueryRefused(
                    query=query, clause="sql", reason="cannot continue where the query stands:"
                    " retention has dropped tuples that its open windows need",
                    fix="let it begin anew, from `now` or from the `oldest` tuple",
                )  # fmt: skip
        if new.since_s is not None:  # it reads other trains, to which no rule applies
            self._executor.rules.forget(query)
        for path in map(self._members.path_of, segments):
            self._store.forget(path)
            if path.first_of is not None and path.into is not None:
                self._parts.derived.forget(path.into)
        for segment in segments:
            self._parts.calls.attempts.pop(segment, None)
        self._changes.unplanned.difference_update(segments)
