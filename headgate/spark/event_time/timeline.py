"""The timeline of some streams: their trains in order of arrival, and the watermark after each."""

import logging
import sqlite3
import threading
from collections.abc import Callable, Mapping, Sequence
from math import inf

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql.types import StructType

from headgate.errors import TrainUnreadable
from headgate.model.stream import Stream
from headgate.model.window import Axis, Stateful, Window
from headgate.model.window_ends import NEVER, Times, first_end
from headgate.spark.event_time.idle_streams import passed_in_quiet
from headgate.spark.event_time.open_sessions import OpenSessions
from headgate.spark.event_time.timeline_entries import CLOCK, PRODUCER, Entry
from headgate.spark.event_time.train_order import Course
from headgate.spark.event_time.train_times import Rows, TrainTimes
from headgate.spark.log.journal import Journal, Train
from headgate.spark.log.stream_log import StreamLog, TimelineTrains

log = logging.getLogger("headgate.spark")

SetAside = Callable[[str, int, int, NDArray[np.bool_], Times], bool]


class Timeline:
    """A stream whose trains are those of other streams, in one order that the journal keeps.

    A tuple is late if its time is below its stream's watermark just before it: the greatest time so
    far, minus the lateness that the stream allows. The watermark of a timeline is the least of its
    streams'. So the log alone decides which tuples are late and when a window closes, not the
    trains that a call happens to take together. A derived stream carries its own watermarks: one
    before each tuple and one after each train (`derived_streams`).

    Args:
        sources: the streams, with their logs.
        put: receives new trains of the timeline, in order, once `speak` was called.
        set_aside: stores the tuples that no window by time will have, before the journal has their
            train. Its arguments are the stream, the train, the number of the train's first tuple,
            which tuples to store, and the times of all. It returns False if it cannot store them.
        idle: returns True if the producer of a derived stream has read all its input. Only then
            does the clock decide whether the stream is quiet.
    """

    def __init__(
        self,
        name: str,
        journal: Journal,
        sources: Mapping[str, tuple[Stream, StreamLog]],
        put: Callable[..., None],
        set_aside: SetAside = lambda *late: True,
        idle: Callable[[str], bool] = lambda stream: True,
    ) -> None:
        self.name, self._journal, self._sources, self._put = name, journal, sources, put
        self._lock = threading.RLock()
        self._course = course = Course(journal, name, tuple(sources))
        self._times = {name: TrainTimes(*source) for name, source in sources.items()}
        self.open_sessions = OpenSessions()
        self._readers: dict[str, Stateful] = {}
        self._sizes: dict[Axis, int] = {}
        self._slides: set[Window] = set()
        self._heard_at_s: dict[str, float] = {}
        self._speaks = False
        self._held_up: set[str] = set()
        """Streams whose next train cannot be added now."""
        self._warned: set[str] = set()
        self._set_aside, self._idle = set_aside, idle
        numbers = {stream: {train.number for train in journal.trains(stream)} for stream in sources}
        # While no query had windows, nothing prevented the log from dropping trains.
        self._lost = {
            entry.number
            for entry in course.entries
            if entry.train >= 0 and entry.train not in numbers[entry.stream]
        }
        self._drop_lost()
        self._needed = course.first

    def _drop_lost(self) -> None:
        """Drop lost trains at the beginning: queries that continue after them have missed them."""
        last = -1
        for entry in self._course.entries:
            if entry.number in self._lost:
                last = entry.number
            elif entry.train >= 0:
                break
        self._course.drop(last + 1)

    @property
    def streams(self) -> tuple[str, ...]:
        return tuple(self._sources)

    @property
    def next_number(self) -> int:
        return self._course.next_number

    def reads(self, query: str, stateful: Stateful) -> None:
        """Keep tuples as long as a query needs them, and advance time when its windows wait."""
        with self._lock:
            if stateful.mode == "sessions":
                self.open_sessions.add(query, stateful)
            else:
                self._readers[query] = stateful
                self._measure()
            self._needed = self._course.first  # the query may begin with the oldest train

    def forget(self, query: str) -> None:
        """Keep nothing for a query that was dropped."""
        with self._lock:
            self.open_sessions.forget(query)
            self._readers.pop(query, None)
            self._measure()

    def _measure(self) -> None:
        """Compute how far back windows reach, and where they end."""
        self._sizes, self._slides = {}, {reader.closes for reader in self._readers.values()}
        for reader in self._readers.values():
            axis = reader.inputs[0].window.axis
            self._sizes[axis] = max(self._sizes.get(axis, 0), reader.reach)

    def catch_up(self) -> None:
        """Add the trains that the logs of its streams have and it does not, in order of arrival."""
        arrivals = [
            (train.mean_arrived_at_s, name, train)
            for name in self._sources
            for train in self._journal.trains(name)
            if train.number >= self._course.now[name].train
        ]
        waits: set[str] = set()
        for _, name, train in sorted(arrivals, key=lambda row: (row[0], row[1], row[2].number)):
            if name not in waits:
                self.take(name, train)
                waits |= self._held_up & {name}
        for name in self._sources:
            self.advance(name)

    def speak(self) -> None:
        """Pass on all existing trains at once, and from now on every new one."""
        with self._lock:
            self._speaks = True
            if self._course.entries:
                self._put(*map(_train_of, self._course.entries))

    def take(self, stream: str, train: Train) -> None:
        """Add a train of one of its streams, unless the timeline has it."""
        with self._lock:
            if train.number < self._course.now[stream].train:
                return
            missing = train.number > self._course.now[stream].train  # some before it were not taken
            earlier = self._journal.trains(stream, train.number) if missing else ()
            for next_train in (*earlier, train):
                if next_train.number >= self._course.now[stream].train:
                    if not self._take_next(stream, next_train):
                        self._held_up.add(stream)
                        break  # the next train or the next beat tries again
                    self._held_up.discard(stream)

    def advance(self, stream: str) -> None:
        """Advance the time of a derived stream to what its producer has reached after the last
        train, if that closes a window.
        """
        if not self._sources[stream][0].is_derived:
            return
        with self._lock:
            end, top, arrived_at_s = self._journal.derived_end(stream)
            now = self._course.now[stream]
            if top is None or top <= now.top or end != now.train:
                return  # or a train comes first, and brings its own time
            self._heard_at_s.pop(stream, None)
            tops = {name: stand.top for name, stand in self._course.now.items()}
            if self._closes(tops, {**tops, stream: top}):
                self._append(self._empty_entry(stream, PRODUCER, top, arrived_at_s))

    def _take_next(self, stream: str, train: Train) -> bool:
        """Add the next train of a stream; return False if that is not possible now."""
        try:
            entry = self._entry_of(stream, train)
            in_time, times = self._times[stream].not_late(entry)
        except TrainUnreadable as error:
            self._warn(stream, error)
            return False
        late = train.number, entry.first_tuple, ~in_time, times
        if not in_time.all() and not self._set_aside(stream, *late):
            return False
        return self._append(entry, durable=not in_time.all())

    def _warn(self, stream: str, error: Exception) -> None:
        if stream not in self._warned:
            self._warned.add(stream)
            log.warning("queries over '%s' wait: %s", self.name, error)

    def _entry_of(self, stream: str, train: Train) -> Entry:
        """Return a train as the next entry of the timeline."""
        times = self._times[stream].times_of(train.number)
        now = self._course.now[stream]
        reach = max(now.reach, int(times.max(initial=NEVER)))
        derived = self._sources[stream][0].is_derived
        train_top = (NEVER if train.top is None else train.top) if derived else reach
        return Entry(
            number=self.next_number, stream=stream, train=train.number, tuples=train.tuples,
            first_tuple=self._journal.first_tuple(stream, train.number), before=now.top,
            top=max(now.top, train_top), arrived_at_s=train.mean_arrived_at_s, reach=reach,
        )  # fmt: skip

    def _empty_entry(self, stream: str, kind: int, top: int, arrived_at_s: float) -> Entry:
        """Return an entry without tuples that advances a stream's time."""
        now = self._course.now[stream]
        return Entry(
            number=self.next_number, stream=stream, train=kind, tuples=0, first_tuple=0,
            before=now.top, top=top, arrived_at_s=arrived_at_s, reach=now.reach,
        )  # fmt: skip

    def beat(self, now_s: float) -> None:
        """Let time pass in quiet streams if that closes a window."""
        with self._lock:
            if self._held_up:
                self.catch_up()
            if self._held_up:
                return
            try:
                for name in self._sources:
                    self.advance(name)
                self._pass_time(now_s)
            except TrainUnreadable as error:
                self._warn(error.stream, error)

    def _pass_time(self, now_s: float) -> None:
        streams = [
            stream
            for stream, _ in self._sources.values()
            if not stream.is_derived or self._idle(stream.name)
        ]
        passed = passed_in_quiet(streams, self._course.now, self._heard_at_s, now_s)
        tops = {name: stand.top for name, stand in self._course.now.items()}
        # All at once: two quiet streams would wait for each other.
        if passed and self._closes(tops, {**tops, **passed}):
            for name, top in passed.items():
                if not self._append(self._empty_entry(name, CLOCK, top, now_s)):
                    break  # the next beat tries again

    def _closes(self, tops: Mapping[str, int], passed: Mapping[str, int]) -> bool:
        """Return True if a window that has tuples closes once streams have reached these times."""
        before, after = self._least(tops), self._least(passed)
        reach = max(stand.reach for stand in self._course.now.values())
        if after == NEVER or reach == NEVER:
            return False
        if before == NEVER or self._ends_session(before, after):
            return True
        return any(
            (first := first_end(window, before)) <= after and first - window.size <= reach
            for window in self._slides
            if window.axis == "time"
        )

    def _ends_session(self, before: int, after: int) -> bool:
        """Return True if a session may end in [before, after): that of a single tuple would."""
        return any(
            (self.times(self.next_number, before - gap) + gap < after).any()
            for gap in self.open_sessions.gaps
        )

    def _append(self, entry: Entry, durable: bool = False) -> bool:
        """Append an entry; return False if the journal cannot be written now."""
        try:
            self._course.append(entry, durable)
        except sqlite3.Error as error:
            self._warn(entry.stream, error)
            return False
        self._warned.discard(entry.stream)
        if entry.train >= 0:
            self._heard_at_s.pop(entry.stream, None)
        if self._speaks:
            self._put(_train_of(entry))
        return True

    def trains(self, first: int, end: int, tuples: int) -> "TimelineTrains":
        """Return the trains first, ..., end − 1."""
        return TimelineTrains(StructType(), (), tuples, lambda: pa.table({}), first=first, end=end)

    def place_type(self, stream: str, axis: Axis) -> pa.DataType:
        """Return the type of places in a stream: that of its event times, or of numbers."""
        return pa.int64() if axis == "rows" else self._times[stream].type

    def tuples(self, first: int, end: int) -> int:
        """Count the tuples of its trains first, ..., end − 1."""
        return sum(entry.tuples for entry in self._between(first, end))

    def watermark(self, end: int, axis: Axis = "time") -> int:
        """Return the watermark after train end − 1; NEVER if there is none yet.

        By number, it is the number of the next tuple: the timeline then has one stream.
        """
        with self._lock:
            if axis == "time":
                return self._least(self._course.tops(end))
            for entry in self._course.backwards(end):
                if entry.train >= 0:
                    return entry.first_tuple + entry.tuples
            later = (entry.first_tuple for entry in self._course.onwards(end))
            return next(later, NEVER)

    def came(self, stream: str, end: int) -> int:
        """Count the tuples of a stream that arrived before train `end`."""
        with self._lock:
            return self._course.came(stream, end)

    def seen(self, stream: str, numbers: Times, other: str) -> Times:
        """Return how many tuples of `other` had arrived when each tuple of a stream arrived.

        Args:
            numbers: of the tuples in their stream.
        """
        with self._lock:
            return self._course.seen(stream, numbers, other)

    def _between(self, first: int, end: int) -> list[Entry]:
        with self._lock:
            return self._course.between(first, end)

    def closing(self, first: int, end: int, axis: Axis) -> tuple[Times, NDArray[np.float64]]:
        """Return the watermark after each of some trains, and when they arrived."""
        entries = self._between(first, end)
        marks = [self.watermark(entry.number + 1, axis) for entry in entries]
        arrived_s = [entry.arrived_at_s for entry in entries]
        return np.array(marks, dtype=np.int64), np.array(arrived_s)

    @property
    def needed_from(self) -> int:
        """The first train that a window may need; earlier ones are kept for new queries."""
        return self._needed

    def reaching(self, stream: str, end: int, axis: Axis, low: int) -> list[int]:
        """Return the numbers of a stream's trains before `end` that may have tuples from `low` on.

        Args:
            low: a time or a number, depending on the axis.
        """
        return [entry.number for entry in self._reaching(stream, end, axis, low)]

    def _reaching(self, stream: str, end: int, axis: Axis, low: int) -> list[Entry]:
        entries: list[Entry] = []
        with self._lock:
            for entry in self._course.backwards(end):
                if entry.stream != stream or entry.train < 0:
                    continue
                if not self._reaches(entry, axis, low):
                    break  # nor do earlier ones: the greatest time so far never falls
                if entry.number not in self._lost:
                    entries.append(entry)
        return entries[::-1]

    def times(self, end: int, low: int) -> Times:
        """Return the times from `low` on of tuples before train `end` that are not late.

        The timeline must have one stream.
        """
        (stream,) = self._sources
        times_by_train = [
            times[in_time & (times >= low)]
            for entry in self._reaching(stream, end, "time", low)
            for in_time, times in [self._times[stream].not_late(entry)]
        ]
        return np.concatenate(times_by_train) if times_by_train else np.zeros(0, np.int64)

    def rows_of(self, stream: str, number: int, axis: Axis) -> Rows | None:
        """Return a stream's tuples in one train; None if there are none."""
        return self._rows(stream, self._between(number, number + 1), number, axis, NEVER)

    def rows(self, stream: str, first: int, end: int, axis: Axis, low: int) -> Rows | None:
        """Return a stream's tuples before train `end`, from a place on; None if there are none.

        By time, late tuples are left out; by number, all are included.

        Args:
            first: tuples of this train and of later ones are new.
            low: time or number below which nothing is wanted.
        """
        return self._rows(stream, self._reaching(stream, end, axis, low), first, axis, low)

    def _rows(
        self, stream: str, entries: Sequence[Entry], first: int, axis: Axis, low: int
    ) -> Rows | None:
        source, tables = self._sources[stream][1], []
        places: list[Times] = []
        news: list[NDArray[np.bool_]] = []
        for entry in entries:
            if axis == "rows":
                place = np.arange(entry.first_tuple, entry.first_tuple + entry.tuples)
                wanted = place >= low
            else:
                wanted, place = self._times[entry.stream].not_late(entry)
                wanted &= place >= low
            if wanted.any():
                table = source.table(entry.train, entry.train + 1)
                tables.append(table if wanted.all() else table.filter(pa.array(wanted)))
                places.append(place[wanted])
                news.append(np.full(int(wanted.sum()), entry.number >= first))
        if not tables:
            return None
        return Rows(pa.concat_tables(tables), np.concatenate(places), np.concatenate(news))

    def late(self, first: int, end: int) -> tuple[int, int]:
        """Count the late tuples and those without a time, in some trains.

        Tuples of lost trains count as late.
        """
        late = timeless = 0
        for entry in self._between(first, end):
            if entry.number in self._lost:
                late += entry.tuples
            elif entry.train >= 0:
                in_time, times = self._times[entry.stream].not_late(entry)
                none = int((times == NEVER).sum()) if self._times[entry.stream].has_times else 0
                timeless += none
                late += int((~in_time).sum()) - none
        return late, timeless

    def held(self, stream: str) -> int:
        """Return the first train of a stream that is still needed."""
        with self._lock:
            trains = (entry.train for entry in self._course.entries if entry.stream == stream)
            return next((train for train in trains if train >= 0), self._course.now[stream].train)

    def drop(self, passed: int, before_s: float = inf) -> None:
        """Drop trains below a number that no window needs any more.

        Args:
            before_s: trains that arrived later stay: a new query begins with them.
        """
        with self._lock:
            lows = self._lows(passed)
            for entry in self._between(self._needed, passed):
                if entry.train >= 0 and any(
                    self._reaches(entry, axis, low[entry.stream]) for axis, low in lows
                ):
                    break
                self._times[entry.stream].forget(entry.train)
                self._needed = entry.number + 1
            before = self._course.first
            for entry in self._course.entries:
                if entry.number >= self._needed or entry.arrived_at_s > before_s:
                    break
                before = entry.number + 1
            self._course.drop(before)

    def _lows(self, passed: int) -> list[tuple[Axis, dict[str, int]]]:
        """Return from which places on windows need tuples, by axis and stream, once all queries
        have passed a train.
        """
        lows: list[tuple[Axis, dict[str, int]]] = []
        for axis, size in self._sizes.items():
            if axis == "rows":
                low = {stream: self.came(stream, passed) - size for stream in self._sources}
            else:
                mark = self.watermark(passed)
                low = dict.fromkeys(self._sources, NEVER if mark == NEVER else mark - size)
            lows.append((axis, low))
        since = self.open_sessions.kept_since(passed)
        return lows if since is None else [*lows, ("time", dict.fromkeys(self._sources, since))]

    def _reaches(self, entry: Entry, axis: Axis, low: int) -> bool:
        if axis == "rows":
            return entry.first_tuple + entry.tuples > low
        return entry.reach >= low or not self._times[entry.stream].has_times

    def _least(self, tops: Mapping[str, int]) -> int:
        return min(self._times[name].mark(top) for name, top in tops.items())


def _train_of(entry: Entry) -> Train:
    return Train(entry.number, entry.tuples, 0, entry.arrived_at_s, entry.arrived_at_s)
