"""Changes while an engine runs: streams and queries that are added, altered and dropped.

The thread that adds a query prepares it: it opens streams and a sink, plans, and measures the query
alone. The loop then makes the change: it places the query in the log and switches to the new
network. So the network, the cursors and the trains that are dropped have one owner. A query that is
restarted or altered is quiet meanwhile: the scheduler plans it no more and no call runs it.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from pyspark.sql.types import StructType

from headgate.model.events import Event, NetworkChanged, QueryStopped, TrainArrived
from headgate.model.network.network import Network, Path
from headgate.model.query import QueryStatistics
from headgate.spark.engine.parts import Parts
from headgate.spark.engine.recovery import refuse_old_results, resumed
from headgate.spark.journal.cursors import Cursors
from headgate.spark.journal.journal_rows import Train

Leave = Callable[[int, set[int]], None]
"""What is done with a query that is quiet: its last unit, and all of its units."""


class Changes:
    """Applies changes to the store, the journal, the executor and, last, the scheduler."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._members, self._journal, self._store = parts.members, parts.journal, parts.store
        self._executor, self._sinks = parts.executor, parts.sinks
        self._coming = 0
        self._last_event: Event | None = None
        self.unplanned: set[int] = set()
        """Units that were stopped; the scheduler knows this and plans them no more."""
        self._leaving: dict[int, tuple[threading.Event, Leave]] = {}
        """Queries that wait for the end of their last call: what is set, and what is done then."""

    @property
    def query_is_coming(self) -> bool:
        """Whether a query needs trains that the scheduler does not count, as it is new or quiet."""
        return self._coming > 0

    def add_stream(self, network: Network, number: int, schema: StructType) -> None:
        """Add a stream of a network: a new one, or one that was dropped and comes back."""
        stream = network.streams[number]
        self._journal.remember_stream(stream.name, schema.simpleString())
        store = self._store
        store.schemas[stream.name] = schema
        new = not self.has_stream(number)
        stream_log = store.log_again(stream)
        begin = self._parts.ingest.prepare(number, stream, stream_log)
        store.sweep()
        store.logs[stream.name] = stream_log
        trains = self._journal.trains(stream.name) if new else []
        first = trains[0].number if trains else stream_log.next_number
        self._change(network, first_trains={number: first} if new else {})
        if trains:
            self._parts.arrivals.put(number, *trains)
        begin()

    def has_stream(self, number: int) -> bool:
        """Return True if a stream has this number, even if its source could not begin."""
        return number < len(self._members.streams)

    def drop_stream(self, name: str) -> None:
        """Stop polling a stream's source; its log stays for as long as retention keeps it."""
        self._parts.ingest.drop(name)

    def ids_of(self, paths: Sequence[Path], *, renewed: bool = False) -> dict[str, int]:
        """Return the ids of paths, by name; new paths, and new versions, get new ones."""
        cursors, names = Cursors(self._journal), [path.query.name for path in paths]
        if renewed:
            cursors.renew_ids(names[-1])
        return cursors.ids(names)

    def add_query(
        self,
        network: Network,
        units: Sequence[int],
        budget_s: float,
        schemas: Mapping[str, StructType],
        make_way: Callable[[Path], None] | None = None,
    ) -> None:
        """Add a query and time it alone first.

        Args:
            network: the network with the query.
            units: the ids of the query's units.
            schemas: those of derived streams.
            make_way: for the next version of a query: releases what the one before it holds.
        """
        paths = [network.path_of(unit) for unit in units]
        if make_way is None:
            self.refuse_old_results(paths[-1:])
        else:
            refuse_old_results(self._journal, paths)
        # In the order of the network: a timeline comes after the streams that it merges.
        opened = [
            number
            for number, stream in enumerate(network.streams)
            if stream.is_derived
            and stream.name in {name for path in paths for name in (path.stream, path.into)}
            and not self._store.has(stream.name)
        ]
        try:
            for number in opened:
                stream = network.streams[number]
                if not stream.of:
                    self._store.schemas[stream.name] = schemas[stream.name]
                self._store.open(stream, partial(self._parts.arrivals.put_named, stream.name))
            sink = self._sinks.create(paths[-1])
            self._sinks[paths[-1].query.name] = sink
            statistics: dict[str, QueryStatistics] = {}
            for path in paths if budget_s else ():
                statistics |= self._parts.warm_up.of_one(path, budget_s / len(paths))
            trains_by_stream = self._join(network, units, opened, statistics, make_way)
        except BaseException:
            # The scheduler does not know its streams: the next query gets their numbers.
            for number in opened:
                self._store.close(network.streams[number].name)
            self._sinks.pop(paths[-1].query.name, None)
            self.arrange(self._members.paths)
            raise
        for number in opened:
            name = network.streams[number].name
            if name in self._store.timelines:
                self._store.timelines[name].publish()
            elif trains_by_stream[number]:
                self._parts.arrivals.put(number, *trains_by_stream[number])
        self._parts.derived.catch_up()

    def _join(
        self,
        network: Network,
        units: Sequence[int],
        opened: Sequence[int],
        statistics: Mapping[str, QueryStatistics],
        make_way: Callable[[Path], None] | None,
    ) -> dict[int, list[Train]]:
        """Have the loop add a query; return the trains in the log of the streams it has opened."""
        paths = [network.path_of(unit) for unit in units]
        names = {number: network.streams[number].name for number in opened}
        trains_by_stream: dict[int, list[Train]] = {}

        def change() -> list[Event]:
            if make_way is not None:
                make_way(paths[-1])
            cursors = {
                unit: resumed(path, network, self._journal, self._store)
                for unit, path in zip(units, paths, strict=True)
            }
            self._parts.reached("query journalled")
            self._store.sweep()
            self._sinks[paths[-1].query.name].resume()
            self._parts.publisher.adopt(paths[-1].query.name)
            self._store.keep_for(paths[-1])
            first_trains = {
                number: self._store.first_train(name)
                for number, name in names.items()
                if not self.has_stream(number)
            }
            # Before the scheduler knows the query that fills these streams: then more come.
            for number, name in names.items():
                trains_by_stream[number] = self._journal.trains(name)
            return [self.switch(network, cursors, first_trains, statistics)]

        self.arrange(self._members.present(network, units).paths)
        self._parts.requests.ask(change)
        return trains_by_stream

    def reclassify(self, network: Network) -> None:
        """Switch to a network in which producers have other readers, so perhaps another class."""
        self._change(network)

    def set_query(self, network: Network, units: Sequence[int]) -> None:
        """Switch to a network in which a query has another class, weight, deadline or QoS graph.

        Args:
            units: the ids of the query's units.
        """
        self._change(network, changed=units)

    def refuse_old_results(self, paths: Sequence[Path]) -> None:
        """Refuse queries whose results would mix with older results of the same name.

        Those are results of a query that was dropped, or that had another text when it last ran.
        """
        refuse_old_results(self._journal, paths)
        cursors = Cursors(self._journal)
        for path in paths:
            cursors.refuse_other_text(path.query.name, path.query.sql)

    def drop_query(self, unit: int) -> threading.Event:
        """Forget a query once its last call has ended; return an event that is set then."""
        return self._leave(unit, self._forget)

    def quiet_query(self, unit: int) -> threading.Event:
        """Stop a query for a repair; return an event that is set once its last call has ended.

        Until `end_quiet` no train is dropped, although the scheduler does not count the query.
        """
        self._parts.requests.tell(lambda: self._keep_trains(1))
        return self._leave(unit, lambda unit, segments: None)

    def end_quiet(self) -> None:
        """Let trains be dropped again after a repair."""
        self._parts.requests.tell(lambda: self._keep_trains(-1))

    def _keep_trains(self, repairs: int) -> list[Event]:
        self._coming += repairs
        return []

    def pause_query(self, unit: int) -> None:
        """Stop a query, in this run and in later ones, until it is restarted."""
        Cursors(self._journal).pause(self._members.path_of(unit).query.name, True)
        self.stop_query(unit)

    def _leave(self, unit: int, leave: Leave) -> threading.Event:
        gone = threading.Event()
        self._leaving[unit] = gone, leave
        self.stop_query(unit)
        return gone

    def stop_query(self, unit: int) -> None:
        """Stop a query, unless it was dropped; the next start resumes it."""

        def change() -> list[Event]:
            now_s = self._parts.clock.now_s()
            return [QueryStopped(now_s, segment) for segment in self._members.segments_of(unit)]

        self._parts.requests.tell(change)

    def note(self, event: Event | None) -> None:
        """Take the event that the scheduler receives next; it has planned with the last one."""
        if isinstance(self._last_event, NetworkChanged) and self._last_event.cursors:
            self._coming -= 1
        self._last_event = event
        if isinstance(event, QueryStopped):
            self.unplanned.add(event.unit)

    def settle_leaving(self) -> None:
        """Let queries go that the scheduler plans no more and that no call runs."""
        if self._parts.requests.ahead:
            return  # an event of such a query may be among them
        for unit in self.unplanned.intersection(list(self._leaving)):
            segments = set(self._members.segments_of(unit))
            query = self._members.path_of(unit).query.name
            ended = not self._parts.calls.runs_any(segments)
            if ended and self._parts.publisher.has_ended(query):
                gone, leave = self._leaving[unit]
                leave(unit, segments)
                del self._leaving[unit]
                gone.set()

    def _forget(self, unit: int, segments: set[int]) -> None:
        members, path = self._members, self._members.path_of(unit)
        name = path.query.name
        self._executor.commits.renames.forget(name)
        Cursors(self._journal).forget(name)
        self._executor.forget(name)
        self._executor.rules.forget(name)
        self._sinks[name].close()
        self._store.forget(path)
        for segment in map(members.path_of, segments):
            self._parts.warm_up.alone_s.pop(segment.known_as, None)
            if segment.into is not None:
                self._store.remove(segment.into)
                self._parts.derived.forget(segment.into)
        self._store.sweep()
        for number in segments:
            self._parts.calls.attempts.pop(number, None)
        self.unplanned -= segments
        del self._sinks[name]
        network = members.network.only(members.network.places.keys() - segments)
        self._parts.requests.ahead.append(self.switch(network, {}, {}, {}))

    def _change(
        self,
        network: Network,
        first_trains: Mapping[int, int] | None = None,
        changed: Sequence[int] = (),
    ) -> None:
        """Have the loop switch to a network that has the same queries.

        Args:
            first_trains: by number of a new stream, the first train in its log.
            changed: the ids of units whose query has other values.
        """

        def change() -> list[Event]:
            event = self.switch(network, {}, first_trains or {}, {})
            present = tuple(unit for unit in changed if unit in event.network.places)
            return [replace(event, changed=present)]

        self.arrange(self._members.present(network).paths)
        self._parts.requests.ask(change)

    def arrange(self, paths: Sequence[Path]) -> None:
        """Decide again which queries share their code."""
        self._executor.arrangement.arrange(paths, self._parts.warm_up.is_costly)

    def switch(
        self,
        network: Network,
        cursors: Mapping[int, int],
        first_trains: Mapping[int, int],
        statistics: Mapping[str, QueryStatistics],
    ) -> NetworkChanged:
        """Switch to a network, in the loop; return the event that the scheduler gets."""
        members = self._members
        self._coming += bool(cursors)
        network = members.present(network, cursors)
        dropped = members.change(network)
        self._parts.producers.connect(members.paths, members.streams)
        groups = tuple(self._executor.arrangement.group_numbers(members.paths))
        return NetworkChanged(
            self._parts.clock.now_s(), network, cursors, first_trains, statistics, groups,
            self._arrivals_from(cursors), dropped,
        )  # fmt: skip

    def _arrivals_from(self, cursors: Mapping[int, int]) -> dict[int, TrainArrived]:
        """Return, by stream number, its trains in the log from the first cursor over it on."""
        network = self._members.network
        begins: dict[str, int] = {}
        for unit, cursor in cursors.items():
            stream = network.path_of(unit).stream
            begins[stream] = min(cursor, begins.get(stream, cursor))
        trains_by_stream = {
            stream: [train for train in self._journal.trains(stream) if train.number >= first]
            for stream, first in begins.items()
        }
        numbers = {stream: network.stream_number(stream) for stream in trains_by_stream}
        return {
            numbers[stream]: self._parts.arrivals.event_of(numbers[stream], trains)
            for stream, trains in trains_by_stream.items()
            if trains
        }
