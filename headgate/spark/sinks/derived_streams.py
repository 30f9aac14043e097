"""Derived streams: the results of a query as a stream that other queries read.

A query with `sink: {format: stream}` (a producer) appends its results to the log of a stream. One
transaction of the journal records the train, the producer's cursor and the time that the producer
has reached, so a crash loses no result and repeats none. From then on it is a log like any other.

What other queries compute over a derived stream must not depend on when its producer ran, nor on
how many trains it took at once. Two rules ensure that:

*Order.* Results that a query computes tuple by tuple are in the log in the order of these tuples,
whatever the order in which Spark returned them. Results of windows and joins have no such order,
and windows by number (ROWS) over them are refused.

*Time.* A result keeps the arrival of the tuple that it was computed from (for a join the latest,
for a window that of the tuple that closed it). It also carries its own watermark, a number in its
file:

- If the producer reads a stream with an event time, and the derived stream has a column of that
  name as its event time: the watermark just before the tuple that it was computed from. So a tuple
  is late here exactly if it is late there, and a query over the derived stream answers as if the
  producer's text stood in its place.
- If the producer has windows by time: the end of the window, the end of the session, the latest
  time of joined tuples, or for a tuple without a partner the last time that a partner could have
  had. No later result has less than the producer's watermark.
- Otherwise: the greatest time in the derived stream before the tuple.

A tuple of a derived stream is late if its time is more than `lateness_s` below that. Each of these
depends on the producer's input alone. After every step, the stream's watermark is that of the
producer after the last train that it has read, even if there were no results: the journal has it,
and windows over the stream close by it. In the third case it is the greatest time so far.

A query that Spark runs as it is written does not report which row came from which tuple. If its
stream has an event time, it runs over one train at a time, and all results of a train count as
computed from its first tuple.
"""

import sqlite3
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from math import inf
from pathlib import Path as File

import numpy as np
import pyarrow as pa

from headgate.errors import LogFull
from headgate.model.network.network import Path
from headgate.model.stream import ARRIVED_AT, Stream
from headgate.model.window_ends import NEVER, Times
from headgate.spark.event_time.derived_watermark import from_own_times, inherited
from headgate.spark.event_time.producers import Producers
from headgate.spark.event_time.store import Store
from headgate.spark.event_time.train_times import times_in
from headgate.spark.journal.derived_trains import Derived, DerivedTrains
from headgate.spark.journal.journal import Journal
from headgate.spark.output import Output
from headgate.spark.work import Work


class DerivedStreams:
    """The writer of derived streams; safe to use from several workers.

    A producer never runs twice at once, so its stream has one writer.

    Args:
        tell: receives the name of a stream and its new train, once the journal has it.
        most_bytes: returns what a derived stream may take on disk at present. A producer whose
            stream takes more waits until its readers have passed some trains.
    """

    def __init__(
        self,
        journal: Journal,
        store: Store,
        producers: Producers,
        tell: Callable[..., None],
        most_bytes: Callable[[], float] = lambda: inf,
    ) -> None:
        self._journal, self._store, self._tell = journal, store, tell
        self._producers = producers
        self._trains, self._most_bytes = DerivedTrains(journal), most_bytes
        self._tops: dict[str, int] = {}
        self._turn = threading.RLock()
        self.is_behind = False
        """Whether the journal could not take the time that a stream has reached."""

    def needs_numbers(self, paths: Iterable[Path]) -> bool:
        """Return True if a call has to report which row comes from which tuple of a stream."""
        return any(
            path.into is not None and path.first_of is None and path.kind.takes_single_tuples
            for path in paths
        )

    def takes_single_trains(self, path: Path) -> bool:
        """Return True if a query has to run over one train at a time."""
        return (
            path.into is not None
            and path.runs_whole
            and self._store.streams[path.into].event_time is not None
        )

    def stage(self, path: Path, output: Output, work: Work) -> Derived:
        """Write what a producer computed from some trains; it counts once the journal has it.

        Raises:
            LogFull: the stream takes more bytes than it may now.
        """
        assert path.into is not None
        stream, log = self._store.streams[path.into], self._store.logs[path.into]
        if log.bytes > self._most_bytes():
            raise LogFull(stream=path.into)
        output = _in_order(output) if self._has_order(path) else output
        table = output.table.append_column(ARRIVED_AT, pa.array(output.arrived_at_s))
        marks, top = self._marks(path, stream, output, work)
        new = None
        if table.num_rows:
            new = log.stage(table, log.next_number, marks)
            train = replace(new.train, top=top)
            new = replace(new, train=train, origin=work.first_train)
        arrived_at_s = self._journal.arrived_at_s(path.stream, work.end_train - 1)
        return Derived(path.into, new, top, arrived_at_s)

    def staged(self, derived: Iterable[Derived]) -> list[File]:
        """Return the files and folders to flush to disk before the journal has the step."""
        return [
            path
            for addition in derived
            if addition.new is not None
            for path in self._store.logs[addition.stream].staged(addition.new)
        ]

    def added(self, derived: Sequence[Derived]) -> None:
        """Pass on a step that the journal has: trains to readers, time to timelines.

        Nothing may fail here: the call would run again, although its results are committed.
        """
        for addition in derived:  # first: the next train must not get the number of one of these
            if addition.top is not None:
                self._tops[addition.stream] = addition.top
            if addition.new is not None:
                self._store.logs[addition.stream].added(addition.new)
        for addition in derived:
            if addition.new is not None:
                self._tell(addition.stream, addition.new.train)
        for addition in derived:
            self._advance(addition.stream)
            # The producer's input may have advanced meanwhile.
            if (path := self._producers.by_stream.get(addition.stream)) is not None:
                self._follow(path)

    def catch_up(self) -> None:
        """Advance the time of streams whose producers have read on without a result."""
        self.is_behind = False
        for path in self._producers.by_stream.values():
            self._follow(path)

    def forget(self, stream: str) -> None:
        """Forget the time of a stream that was dropped."""
        self._tops.pop(stream, None)

    def _advance(self, stream: str) -> None:
        """Advance the time of everything that reads a stream."""
        for timeline in self._store.timelines_of(stream):
            timeline.advance(stream)
        for path in self._producers.by_stream.values():
            if path.stream == stream:
                self._follow(path)

    def _follow(self, path: Path) -> None:
        """Advance the time of a stream when that of its producer's input advances without a tuple.

        For producers with windows the timeline does this, by trains without tuples.
        """
        source = self._store.streams[path.stream]
        if path.into is None or not source.is_derived or not self._inherits(path):
            return
        with self._turn:
            end, top, arrived_at_s = self._trains.end(path.stream)
            if top is None or self._producers.cursor(path) != end:
                return  # it has a train to read, which brings its own time
            top -= round(source.lateness_s * 1e6)
            if top > self._top(path.into):
                try:
                    self._trains.add_time(Derived(path.into, None, top, arrived_at_s))
                except sqlite3.Error:  # a full disk, for example
                    self.is_behind = True
                    return
                self._tops[path.into] = top
                self._advance(path.into)

    def _marks(
        self, path: Path, stream: Stream, output: Output, work: Work
    ) -> tuple[Times | None, int | None]:
        """Return the watermark before each row, and that after the last train."""
        if stream.event_time is None or path.first_of is not None:
            return None, None
        before, places = self._top(stream.name), output.places
        if path.kind.by_time:
            marks, top = places, self._store.timelines[path.stream].watermark(work.end_train)
        elif self._inherits(path):
            input_marks, top = self._input_marks(path, work, before)
            marks = None if places is None else input_marks[places]
        elif places is None:
            marks, top = None, before  # no results
        else:
            marks, top = from_own_times(times_in(output.table, stream.event_time), places, before)
        top = max(top, before)
        return marks, None if top == NEVER else top

    def _input_marks(self, path: Path, work: Work, before: int) -> tuple[Times, int]:
        """Return the watermark before each tuple of a producer's input, and after the last."""
        source, log = self._store.streams[path.stream], self._store.logs[path.stream]
        first, end, lateness = work.first_train, work.end_train, round(source.lateness_s * 1e6)
        assert source.event_time is not None
        if not source.is_derived:
            name = next(n for n in log.schema.names if n.lower() == source.event_time.lower())
            return inherited(times_in(log.columns(first, end, [name]), name), lateness, before)
        marks = np.concatenate([log.marks(number) for number in range(first, end)])
        below = np.where(marks == NEVER, NEVER, marks - lateness)
        last, top, _ = self._trains.end(path.stream)
        top = top if last == end else self._trains.top_of(path.stream, end - 1)
        return np.maximum(below, before), before if top is None else top - lateness

    def _inherits(self, path: Path) -> bool:
        """Return True if the stream that a path fills has the event time of the stream it reads."""
        assert path.into is not None
        stream, source = self._store.streams[path.into], self._store.streams[path.stream]
        names = [side.event_time or "" for side in (stream, source)]
        return names[0].lower() == names[1].lower() != ""

    def _has_order(self, path: Path) -> bool:
        """Return True if rows have the order of the tuples or windows they were computed from."""
        return path.first_of is None and not path.kind.by_time

    def _top(self, stream: str) -> int:
        """Return the time that the producer of a stream has reached."""
        if stream not in self._tops:
            top = self._trains.end(stream)[1]
            self._tops[stream] = NEVER if top is None else top
        return self._tops[stream]


def _in_order(output: Output) -> Output:
    """Return rows sorted by place; rows of one place keep their order."""
    places = output.places
    if places is None or not len(places) or bool((places[1:] >= places[:-1]).all()):
        return output
    order = np.argsort(places, kind="stable")
    return replace(
        output, table=output.table.take(order), arrived_at_s=output.arrived_at_s[order],
        places=places[order],
    )  # fmt: skip
