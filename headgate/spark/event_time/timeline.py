"""The time of streams: their trains in the order they came in, with the watermark behind each."""

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
    """A stream whose trains are those of others, in one order that the journal keeps.

    A tuple is late if its time is below its stream's watermark just before it: the greatest time so
    far, less what the stream allows as lateness. The watermark of a timeline is the least of its
    streams'. So what is late, and when a window closes, is a matter of the log alone, and not of
    which trains a call happens to take together. A derived stream brings its watermark along, that
    before each tuple and that behind each train (`derived`).

    Args:
        sources: the streams, with their logs.
        put: takes new trains of the timeline, in order, once it speaks.
        set_aside: takes what no window by time will have, before the journal has the train: its
            stream, number, first tuple, which tuples these are, and the times of all. Tells
            whether it has.
        idle: tells of a derived stream whether its producer has read all that there is. Only then
            does the clock say how quiet it is.
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
        """Streams whose next train cannot be taken in now."""
        self._told: set[str] = set()
        self._set_aside, self._idle = set_aside, idle
        kept = {stream: {each.number for each in journal.trains(stream)} for stream in sources}
        # While no query had windows, nobody kept the log from dropping trains.
        self._lost = {
            each.number
            for each in course.entries
            if each.train >= 0 and each.train not in kept[each.stream]
        }
        self._drop_lost()
        self._needed = course.first

    def _drop_lost(self) -> None:
        """Drops what is lost at its beginning: queries that go on behind it have missed it."""
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

    def reads(self, query: str, how: Stateful) -> None:
        """Keeps tuples as long as a query needs them, and has time pass where it waits for it."""
        with self._lock:
            if how.mode == "sessions":
                self.open_sessions.add(query, how)
            else:
                self._readers[query] = how
                self._measure()
            self._needed = self._course.first  # it may begin with the oldest

    def forget(self, query: str) -> None:
        """Keeps nothing for a query that was dropped."""
        with self._lock:
            self.open_sessions.forget(query)
            self._readers.pop(query, None)
            self._measure()

    def _measure(self) -> None:
        """Says how far windows reach, and where they end."""
        self._sizes, self._slides = {}, {how.closes for how in self._readers.values()}
        for how in self._readers.values():
            axis = how.inputs[0].window.axis
            self._sizes[axis] = max(self._sizes.get(axis, 0), how.reach)

    def catch_up(self) -> None:
        """Takes in what the logs of its streams have and it does not, in the order of arrival."""
        found = [
            (train.mean_arrived_at_s, name, train)
            for name in self._sources
            for train in self._journal.trains(name)
            if train.number >= self._course.now[name].train
        ]
        waits: set[str] = set()
        for _, name, train in sorted(found, key=lambda each: (each[0], each[1], each[2].number)):
            if name not in waits:
                self.take(name, train)
                waits |= self._held_up & {name}
        for name in self._sources:
            self.advance(name)

    def speak(self) -> None:
        """Tells of all trains that there are, at once, and from now on of every new one."""
        with self._lock:
            self._speaks = True
            if self._course.entries:
                self._put(*map(_train_of, self._course.entries))

    def take(self, stream: str, train: Train) -> None:
        """Takes in a train of one of its streams; nothing if it has it."""
        with self._lock:
            if train.number < self._course.now[stream].train:
                return
            missing = train.number > self._course.now[stream].train  # nobody has told of some yet
            for each in (*(self._journal.trains(stream, train.number) if missing else ()), train):
                if each.number >= self._course.now[stream].train:
                    if not self._taken_in(stream, each):
                        self._held_up.add(stream)
                        break  # it comes again with the next, or soon
                    self._held_up.discard(stream)

    def advance(self, stream: str) -> None:
        """Let the time of a derived stream pass as far as its producer has come behind the last
        train, where that closes a window.
        """
        if not self._sources[stream][0].is_derived:
            return
        with self._lock:
            end, top, arrived_at_s = self._journal.derived_end(stream)
            now = self._course.now[stream]
            if top is None or top <= now.top or end != now.train:
                return  # or a train comes first, and brings its time along
            self._heard_at_s.pop(stream, None)
            tops = {name: each.top for name, each in self._course.now.items()}
            if self._closes(tops, {**tops, stream: top}):
                self._append(self._beat(stream, PRODUCER, top, arrived_at_s))

    def _taken_in(self, stream: str, train: Train) -> bool:
        """Takes in the next train of a stream; False where that is not possible now."""
        try:
            entry = self._entry_of(stream, train)
            kept, times = self._times[stream].not_late(entry)
        except TrainUnreadable as error:
            self._tell(stream, error)
            return False
        late = train.number, entry.first_tuple, ~kept, times
        if not kept.all() and not self._set_aside(stream, *late):
            return False
        return self._append(entry, durable=not kept.all())

    def _tell(self, stream: str, error: Exception) -> None:
        if stream not in self._told:
            self._told.add(stream)
            log.warning("queries over '%s' wait: %s", self.name, error)

    def _entry_of(self, stream: str, train: Train) -> Entry:
        """Gives a train as it is the next of the timeline."""
        times = self._times[stream].of(train.number)
        now = self._course.now[stream]
        reach = max(now.reach, int(times.max(initial=NEVER)))
        derived = self._sources[stream][0].is_derived
        come_to = (NEVER if train.top is None else train.top) if derived else reach
        return Entry(
            number=self.next_number, stream=stream, train=train.number, tuples=train.tuples,
            first_tuple=self._journal.first_tuple(stream, train.number), before=now.top,
            top=max(now.top, come_to), arrived_at_s=train.mean_arrived_at_s, reach=reach,
        )  # fmt: skip

    def _beat(self, stream: str, kind: int, top: int, arrived_at_s: float) -> Entry:
        """Return a train without tuples that brings a stream's time forward."""
        now = self._course.now[stream]
        return Entry(
            number=self.next_number, stream=stream, train=kind, tuples=0, first_tuple=0,
            before=now.top, top=top, arrived_at_s=arrived_at_s, reach=now.reach,
        )  # fmt: skip

    def beat(self, now_s: float) -> None:
        """Lets time pass in streams that are quiet, where that closes a window."""
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
                self._tell(error.stream, error)

    def _pass_time(self, now_s: float) -> None:
        streams = [
            stream
            for stream, _ in self._sources.values()
            if not stream.is_derived or self._idle(stream.name)
        ]
        passed = passed_in_quiet(streams, self._course.now, self._heard_at_s, now_s)
        tops = {name: each.top for name, each in self._course.now.items()}
        # All at once: two that are quiet would wait for each other.
        if passed and self._closes(tops, {**tops, **passed}):
            for name, top in passed.items():
                if not self._append(self._beat(name, CLOCK, top, now_s)):
                    break  # the clock beats again

    def _closes(self, tops: Mapping[str, int], passed: Mapping[str, int]) -> bool:
        """Tells whether a window that has tuples closes once streams' times have come so far."""
        before, after = self._least(tops), self._least(passed)
        reach = max(each.reach for each in self._course.now.values())
        if after == NEVER or reach == NEVER:
            return False
        if before == NEVER or self._ends_session(before, after):
            return True
        return any(
            (first := first_end(each, before)) <= after and first - each.size <= reach
            for each in self._slides
            if each.axis == "time"
        )

    def _ends_session(self, before: int, after: int) -> bool:
        """Tells whether a session may end in [before, after): one tuple's would."""
        return any(
            (self.times(self.next_number, before - gap) + gap < after).any()
            for gap in self.open_sessions.gaps
        )

    def _append(self, entry: Entry, durable: bool = False) -> bool:
        """Takes a train in; False where the journal cannot be written now."""
        try:
            self._course.append(entry, durable)
        except sqlite3.Error as error:
            self._tell(entry.stream, error)
            return False
        self._told.discard(entry.stream)
        if entry.train >= 0:
            self._heard_at_s.pop(entry.stream, None)
        if self._speaks:
            self._put(_train_of(entry))
        return True

    def trains(self, first: int, end: int, tuples: int) -> "TimelineTrains":
        """Gives the trains first, ..., end − 1."""
        return TimelineTrains(StructType(), (), tuples, lambda: pa.table({}), first=first, end=end)

    def place_type(self, stream: str, axis: Axis) -> pa.DataType:
        """Return the type of places in a stream: that of its event times, or of numbers."""
        return pa.int64() if axis == "rows" else self._times[stream].type

    def tuples(self, first: int, end: int) -> int:
        """Counts the tuples of its trains first, ..., end − 1."""
        return sum(each.tuples for each in self._between(first, end))

    def watermark(self, end: int, axis: Axis = "time") -> int:
        """Gives the watermark behind train end − 1; NEVER: there is none yet.

        By number, it is that of the next tuple: there is one stream then.
        """
        with self._lock:
            if axis == "time":
                return self._least(self._course.tops(end))
            for each in self._course.backwards(end):
                if each.train >= 0:
                    return each.first_tuple + each.tuples
            later = (each.first_tuple for each in self._course.onwards(end))
            return next(later, NEVER)

    def came(self, stream: str, end: int) -> int:
        """Counts the tuples of a stream that came before train `end`."""
        with self._lock:
            return self._course.came(stream, end)

    def seen(self, stream: str, numbers: Times, other: str) -> Times:
        """Counts for tuples of a stream, by number, those of another that had come by then."""
        with self._lock:
            return self._course.seen(stream, numbers, other)

    def _between(self, first: int, end: int) -> list[Entry]:
        with self._lock:
            return self._course.between(first, end)

    def closing(self, first: int, end: int, axis: Axis) -> tuple[Times, NDArray[np.float64]]:
        """Gives the watermark behind each of some trains, and when they arrived."""
        entries = self._between(first, end)
        marks = [self.watermark(each.number + 1, axis) for each in entries]
        arrived_s = [each.arrived_at_s for each in entries]
        return np.array(marks, dtype=np.int64), np.array(arrived_s)

    @property
    def needed_from(self) -> int:
        """The first train that a window may need; those before it are kept for queries to come."""
        return self._needed

    def reaching(self, stream: str, end: int, axis: Axis, low: int) -> list[int]:
        """Gives the numbers of trains of a stream, before one, that reach up to a place."""
        return [each.number for each in self._reaching(stream, end, axis, low)]

    def _reaching(self, stream: str, end: int, axis: Axis, low: int) -> list[Entry]:
        found: list[Entry] = []
        with self._lock:
            for each in self._course.backwards(end):
                if each.stream != stream or each.train < 0:
                    continue
                if not self._reaches(each, axis, low):
                    break  # neither do those before it: what is greatest so far never falls
                if each.number not in self._lost:
                    found.append(each)
        return found[::-1]

    def times(self, end: int, low: int) -> Times:
        """Gives the times, from one on, of its only stream's tuples that are not late and lie
        before a train.
        """
        (stream,) = self._sources
        found = [
            times[kept & (times >= low)]
            for entry in self._reaching(stream, end, "time", low)
            for kept, times in [self._times[stream].not_late(entry)]
        ]
        return np.concatenate(found) if found else np.zeros(0, np.int64)

    def rows_of(self, stream: str, number: int, axis: Axis) -> Rows | None:
        """Gives a stream's tuples of one train; None where there are none."""
        return self._rows(stream, self._between(number, number + 1), number, axis, NEVER)

    def rows(self, stream: str, first: int, end: int, axis: Axis, low: int) -> Rows | None:
        """Gives a stream's tuples of trains first, ..., end − 1 and those before them, from a
        place on; None where there are none.

        By time there are no late ones; by number all are there.

        Args:
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
                kept = place >= low
            else:
                kept, place = self._times[entry.stream].not_late(entry)
                kept &= place >= low
            if kept.any():
                table = source.table(entry.train, entry.train + 1)
                tables.append(table if kept.all() else table.filter(pa.array(kept)))
                places.append(place[kept])
                news.append(np.full(int(kept.sum()), entry.number >= first))
        if not tables:
            return None
        return Rows(pa.concat_tables(tables), np.concatenate(places), np.concatenate(news))

    def late(self, first: int, end: int) -> tuple[int, int]:
        """Counts the tuples that are late and those that have no time, of some trains.

        What is lost with its train counts as late.
        """
        late = timeless = 0
        for entry in self._between(first, end):
            if entry.number in self._lost:
                late += entry.tuples
            elif entry.train >= 0:
                kept, times = self._times[entry.stream].not_late(entry)
                none = int((times == NEVER).sum()) if self._times[entry.stream].known else 0
                timeless += none
                late += int((~kept).sum()) - none
        return late, timeless

    def held(self, stream: str) -> int:
        """Gives the first train of a stream that is still needed."""
        with self._lock:
            kept = (each.train for each in self._course.entries if each.stream == stream)
            return next((train for train in kept if train >= 0), self._course.now[stream].train)

    def drop(self, passed: int, before_s: float = inf) -> None:
        """Forgets trains below a number that no window needs any more.

        Args:
            before_s: those that arrived later stay: a query that comes begins with them.
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
        """Gives the places from which on windows need tuples of streams, once all have passed a
        train.
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
        return entry.reach >= low or not self._times[entry.stream].known

    def _least(self, tops: Mapping[str, int]) -> int:
        return min(self._times[name].mark(top) for name, top in tops.items())


def _train_of(entry: Entry) -> Train:
    return Train(entry.number, entry.tuples, 0, entry.arrived_at_s, entry.arrived_at_s)
