"""Repairs of single queries while the others run: restart, pause, resume, another text."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from headgate.config import since_of
from headgate.errors import ConfigRefused, QueryRefused, RequestRefused
from headgate.model.network.network import Path
from headgate.model.query import RHYTHM, Query
from headgate.model.stream import Stream
from headgate.runtime.members.membership import Membership
from headgate.runtime.members.sink_folder import placed, versioned
from headgate.runtime.run.live_query import LiveQuery

LOOK_EVERY_S = 0.2
"""How often a repair checks that the run goes on while it waits for the last call of a query."""


class Repairs:
    """Repairs of the queries of a Headgate.

    The methods of `Headgate` with the same names document the errors that methods raise here.
    """

    def __init__(self, membership: Membership) -> None:
        self._membership = membership

    def restart(self, name: str) -> None:
        with self._quiet(name, "restart_query") as query:
            self._start(query)

    def set_query(self, name: str, values: Mapping[str, Any]) -> Query:
        membership = self._membership
        with membership.lock:
            changed = membership.set_query(name, values)
            query = membership.query(name)
            runs = membership.run is not None and query.state in ("RUNNING", "WAITING")
            if runs and values.keys() & set(RHYTHM):
                self.restart(name)  # another query gets the new sink when it starts
        return changed

    def pause(self, name: str) -> None:
        membership = self._membership
        with membership.lock:
            engine, query = membership.engine_for("pause_query"), membership.query(name)
            if query.error is not None:
                raise RequestRefused(
                    message=f"query '{name}' has failed.\nFix: start it again by `headgate restart"
                    f" {name}`, or drop it"
                )
            engine.changes.pause_query(membership.catalog.ids[name])
            query.paused = True

    def resume(self, name: str) -> None:
        query = self._membership.query(name)
        if not (query.paused or query.stopped):
            raise RequestRefused(
                message=f"query '{name}' is {query.state}, not PAUSED.\nFix: start a query that has"
                f" failed by `headgate restart {name}`"
            )
        self.restart(name)

    def alter(self, name: str, sql: str, start_from: str | None) -> int:
        since_s = None if start_from is None else since_of(name, start_from)
        with self._membership.lock:
            self._membership.run_for("alter_query")
            query = self._membership.query(name)
            definition = replace(self._membership.definitions[query.name], sql=sql)
            queues, new = self._next_version(definition, since_s)
            streams, is_paused = self._streams(queues, new), query.paused
            with self._quiet(name, "alter_query"):
                try:
                    self._replace(query, streams, new)
                except BaseException:
                    if query.error is None:
                        self._start(query)
                    raise
                finally:
                    if is_paused:
                        self.pause(name)
            self._membership.definitions[name] = definition
        return new.version

    def _next_version(self, definition: Query, since_s: float | None) -> tuple[list[Stream], Path]:
        """Return the timeline that the next version of a query reads, if any, and its path."""
        membership, catalog, name = self._membership, self._membership.catalog, definition.name
        version, others = membership.query(name).path.version + 1, self._others(name)
        # It runs in one piece for the rest of the run; the next start may cut it.
        query = placed(
            replace(definition, cut=False), membership.state, others, membership.deliver.get(name)
        )
        queues, path = membership.with_text(versioned(query, version), others)
        path = replace(path, version=version, since_s=since_s)
        self._refuse_other_place(path, since_s)
        catalog.network_of(self._streams(queues, path), [*others, path])
        return queues, path

    def _replace(self, query: LiveQuery, streams: list[Stream], new: Path) -> None:
        """Replace a query that is quiet by its next version."""
        membership, catalog, name = self._membership, self._membership.catalog, query.name
        engine, run = membership.engine_for("alter_query"), membership.run_for("alter_query")
        old, ids = catalog.ids[name], engine.changes.ids_of([new], renewed=True)
        network = catalog.network_of(streams, [*self._others(name), new], ids)
        engine.repairs.alter_query(network, old, ids[name], membership.settings.rehearsal_s)
        membership.catalog = catalog.replace_query(name, streams, new, ids)
        run.release(old)
        query.begin_again(new)
        run.bind(ids[name], query)

    def begin(self) -> None:
        """Stop queries whose folders cannot be written; pause those that were paused before."""
        engine = self._membership.engine_for("start")
        for name in engine.paused:
            if name in self._membership.queries:
                self.pause(name)
        for name, error in engine.unusable.items():
            self._membership.query(name).error = error
            engine.changes.stop_query(self._membership.catalog.ids[name])

    @contextmanager
    def _quiet(self, name: str, method: str) -> Iterator[LiveQuery]:
        """Stop a query, wait until its last call has ended, and yield it."""
        membership = self._membership
        with membership.lock:
            engine, query = membership.engine_for(method), membership.query(name)
            run = membership.run_for(method)
            try:
                quiet = engine.changes.quiet_query(membership.catalog.ids[name])
                while not quiet.wait(LOOK_EVERY_S):
                    if not run.is_alive:
                        raise RequestRefused(
                            message="the run has ended; nothing can be changed any more"
                        )
                yield query
            finally:
                engine.changes.end_quiet()

    def _start(self, query: LiveQuery) -> None:
        membership = self._membership
        engine, number = membership.engine_for("restart_query"), membership.catalog.ids[query.name]
        try:
            engine.repairs.restart_query(number)
        except Exception as error:
            query.error = error
            raise
        query.begin_again(query.path)
        membership.run_for("restart_query").bind(number, query)

    def _others(self, name: str) -> list[Path]:
        """Return the paths of all other queries."""
        paths = self._membership.catalog.paths
        return [path for path in paths if name not in (path.query.name, path.first_of)]

    def _streams(self, queues: list[Stream], new: Path) -> list[Stream]:
        """Return all streams, with the timeline that a version reads."""
        return self._membership.catalog.with_query(queues, [new])[0]

    def _refuse_other_place(self, new: Path, since_s: float | None) -> None:
        """Refuse a version that reads other streams and yet is to continue, or breaks readers."""
        name, catalog = new.query.name, self._membership.catalog
        first = catalog.segments_of(name)[0]
        if since_s is None and new.stream != first.stream:
            raise QueryRefused(
                query=name, clause="FROM", reason="needs other streams than before, or other"
                " windows over them: there is no place at which it could continue",
                fix="say where it begins, as in `--from now` or `--from oldest`",
            )  # fmt: skip
        if new.into is not None and since_s is not None:
            raise ConfigRefused(
                path=f"query '{name}'", key="from", value=None,
                expected="left out: other queries would read the results of tuples twice, or miss"
                " some",
            )  # fmt: skip
