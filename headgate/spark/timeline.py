"""The time of streams: their trains in the order they came in, with the watermark behind each."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql.types import StructType

from headgate.model.stream import Stream
from headgate.model.window import Axis, Stateful, Window
from headgate.spark.journal import Entry, Journal, Stand, Train
from headgate.spark.stream_log import StreamLog, Trains

NEVER = np.iinfo(np.int64).min
"""The time of a tuple that has none, and of a stream that has had no tuple."""

Times = NDArray[np.int64]


@dataclass(frozen=True)
class Rows:
    """Tuples of one stream that are not late, with what says where they belong.

    Args:
        place: time in microseconds or number, whichever the window goes by.
        new: whether they belong to the trains that are taken in now.
    """

    table: pa.Table
    place: Times
    new: NDArray[np.bool_]


@dataclass(frozen=True)
class TimelineTrains(Trains):
    """Trains first, ..., end − 1 of a timeline: whoever computes over them looks at others, too."""

    first: int
    end: int


class Timeline:
    """A stream whose trains are those of others, in one order that the journal keeps.

    A tuple is late if its time is below its stream's watermark just before it: the greatest time so
    far, less what the stream allows as lateness. The watermark of a timeline is the least of its
    streams'. So what is late, and when a window closes, is a matter of the log alone, and not of
    which trains a call happens to take together.

    Args:
        sources: the streams, with their logs.
        put: takes new trains of the timeline, in order, once it speaks.
    """

    tuple_bytes = 0.0

    def __init__(
        self,
        name: str,
        journal: Journal,
        sources: Mapping[str, tuple[Stream, StreamLog]],
        put: Callable[..., None],
    ) -> None:
        self.name, self._journal, self._sources, self._put = name, journal, sources, put
        self._lock = threading.RLock()
        self._entries = journal.entries(name)
        self._first = self._entries[0].number if self._entries else journal.next_train(name)
        self._times: dict[tuple[str, int], Times] = {}
        self._sizes: dict[Axis, int] = {}
        self._slides: set[Window] = set()
        nothing = dict.fromkeys(sources, Stand(0, NEVER, NEVER))
        self._gone = {**nothing, **journal.stands(name)}
        self._now = _after(self._gone, self._entries)
        self._needed = self._first
        self._heard_at_s: dict[str, float] = {}
        self._speaks = False
        kept = {stream: {each.number for each in journal.trains(stream)} for stream in sources}
        # While no query had windows, nobody kept the log from dropping trains.
        self._lost = {
            each.number
            for each in self._entries
            if each.train >= 0 and each.train not in kept[each.stream]
        }

    @property
    def streams(self) -> tuple[str, ...]:
        return tuple(self._sources)

    @property
    def next_number(self) -> int:
        return self._first + len(self._entries)

    def reads(self, how: Stateful) -> None:
        """Keeps tuples as long as a query needs them, and has time pass where it waits for it."""
        axis = how.inputs[0].window.axis
        with self._lock:
            self._sizes[axis] = max(self._sizes.get(axis, 0), how.reach)
            self._slides.add(how.closes)
            self._needed = self._first  # it may begin with the oldest

    def catch_up(self) -> None:
        """Takes in what the logs of its streams have and it does not, in the order of arrival."""
        found = [
            (train.mean_arrived_at_s, name, train)
            for name in self._sources
            for train in self._journal.trains(name)
            if train.number >= self._now[name].train
        ]
        for _, name, train in sorted(found, key=lambda each: (each[0], each[1], each[2].number)):
            self.take(name, train)

    def speak(self) -> None:
        """Tells of all trains that there are, at once, and from now on of every new one."""
        with self._lock:
            self._speaks = True
            if self._entries:
                self._put(*map(_train_of, self._entries))

    def take(self, stream: str, train: Train) -> None:
        """Takes in a train of one of its streams; nothing if it has it."""
        with self._lock:
            if train.number < self._now[stream].train:
                return
            missing = train.number > self._now[stream].train
            for each in self._journal.trains(stream, train.number) if missing else ():
                if each.number >= self._now[stream].train:  # nobody has told of it yet
                    self.take(stream, each)
            times = self._times_of(stream, train.number)
            known = times[times != NEVER]
            before = self._now[stream].top
            top = max(before, int(known.max())) if len(known) else before
            self._append(
                Entry(
                    number=self.next_number, stream=stream, train=train.number,
                    tuples=train.tuples,
                    first_tuple=self._journal.first_tuple(stream, train.number),
                    before=before, top=top, arrived_at_s=train.mean_arrived_at_s,
                )
            )  # fmt: skip

    def beat(self, now_s: float) -> None:
        """Lets time pass in streams that are quiet, where that closes a window.

        A stream that has been quiet for its `quiet_s` goes on at the pace of the clock. One that
        has had no tuple yet is where the others are.
        """
        with self._lock:
            own = self._now
            tops = {name: each.top for name, each in own.items()}
            passed: dict[str, int] = {}
            without: list[str] = []
            for name, (stream, _) in self._sources.items():
                heard_at_s = self._heard_at_s.setdefault(name, now_s)
                if stream.quiet_s is None or now_s - heard_at_s < stream.quiet_s:
                    continue
                if own[name].heard == NEVER:
                    without.append(name)
                else:
                    passed[name] = own[name].heard + round((now_s - heard_at_s) * 1e6)
            there = {**tops, **passed}.values()
            passed |= dict.fromkeys(without, max(there, default=NEVER))
            passed = {name: top for name, top in passed.items() if top > tops[name]}
            # All at once: two that are quiet would wait for each other.
            if passed and self._closes(tops, {**tops, **passed}):
                for name, top in passed.items():
                    beat = Entry(
                        number=self.next_number, stream=name, train=-1, tuples=0, first_tuple=0,
                        before=tops[name], top=top, arrived_at_s=now_s,
                    )  # fmt: skip
                    self._append(beat)

    def _closes(self, tops: Mapping[str, int], passed: Mapping[str, int]) -> bool:
        """Tells whether a window that has tuples closes once streams' times have come so far."""
        before, after = self._least(tops), self._least(passed)
        reach = max(each.heard for each in self._now.values())
        if after == NEVER or reach == NEVER:
            return False
        return before == NEVER or any(
            (first := _first_end(each, before)) <= after and first - each.size <= reach
            for each in self._slides
            if each.axis == "time"
        )

    def _append(self, entry: Entry) -> None:
        self._journal.add_entry(self.name, entry)
        self._entries.append(entry)
        self._now = _after(self._now, [entry])
        if entry.train >= 0:
            self._heard_at_s.pop(entry.stream, None)
        if self._speaks:
            self._put(_train_of(entry))

    def trains(self, first: int, end: int, tuples: int) -> "TimelineTrains":
        """Gives the trains first, ..., end − 1."""
        return TimelineTrains(StructType(), (), tuples, lambda: pa.table({}), first, end)

    def tuples(self, first: int, end: int) -> int:
        """Counts the tuples of its trains first, ..., end − 1."""
        return sum(each.tuples for each in self._between(first, end))

    def watermark(self, end: int, axis: Axis = "time") -> int:
        """Gives the watermark behind train end − 1; NEVER: there is none yet.

        By number, it is that of the next tuple: there is one stream then.
        """
        with self._lock:
            if axis == "time":
                return self._least(self._tops(end))
            for each in self._backwards(end):
                if each.train >= 0:
                    return each.first_tuple + each.tuples
            later = (each.first_tuple for each in self._onwards(end))
            return next(later, NEVER)

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
            for each in self._backwards(end):
                if each.stream != stream or each.train < 0:
                    continue
                if not self._reaches(each, axis, low):
                    break  # neither do those before it: what is greatest so far never falls
                if each.number not in self._lost:
                    found.append(each)
        return found[::-1]

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
        log, tables = self._sources[stream][1], []
        places: list[Times] = []
        news: list[NDArray[np.bool_]] = []
        for entry in entries:
            if axis == "rows":
                place = np.arange(entry.first_tuple, entry.first_tuple + entry.tuples)
                kept = place >= low
            else:
                kept, place = self._not_late(entry)
                kept &= place >= low
            if kept.any():
                table = log.table(entry.train, entry.train + 1)
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
                kept, times = self._not_late(entry)
                none = int((times == NEVER).sum()) if self._has_time(entry.stream) else 0
                timeless += none
                late += int((~kept).sum()) - none
        return late, timeless

    def held(self, stream: str) -> int:
        """Gives the first train of a stream that is still needed."""
        with self._lock:
            kept = (each.train for each in self._entries if each.stream == stream)
            return next((train for train in kept if train >= 0), self._now[stream].train)

    def drop(self, passed: int, before_s: float = inf) -> None:
        """Forgets trains below a number that no window needs any more.

        Args:
            before_s: those that arrived later stay: a query that comes begins with them.
        """
        with self._lock:
            low = self.watermark(passed)
            place = self.watermark(passed, "rows")
            sizes = self._sizes
            for entry in self._between(self._needed, passed):
                time = "time" in sizes and (
                    low == NEVER or self._reaches(entry, "time", low - sizes["time"])
                )
                rows = "rows" in sizes and self._reaches(entry, "rows", place - sizes["rows"])
                if entry.train >= 0 and (time or rows):
                    break
                self._times.pop((entry.stream, entry.train), None)
                self._needed = entry.number + 1
            before = self._first
            for entry in self._entries:
                if entry.number >= self._needed or entry.arrived_at_s > before_s:
                    break
                before = entry.number + 1
            if before > self._first:
                gone = self._entries[: before - self._first]
                self._gone = _after(self._gone, gone)
                self._journal.drop_entries(self.name, before, self._gone)
                del self._entries[: before - self._first]
                self._first = before

    def _between(self, first: int, end: int) -> list[Entry]:
        with self._lock:
            return self._entries[max(0, first - self._first) : max(0, end - self._first)]

    def _backwards(self, end: int) -> Iterator[Entry]:
        """Gives the trains before one, the last first."""
        for at in range(min(end, self.next_number) - self._first - 1, -1, -1):
            yield self._entries[at]

    def _onwards(self, first: int) -> Iterator[Entry]:
        """Gives the trains from one on."""
        for at in range(max(0, first - self._first), len(self._entries)):
            yield self._entries[at]

    def _reaches(self, entry: Entry, axis: Axis, low: int) -> bool:
        if axis == "rows":
            return entry.first_tuple + entry.tuples > low
        return entry.top >= low or not self._has_time(entry.stream)

    def _tops(self, end: int) -> dict[str, int]:
        """Gives the greatest time so far of every stream, before train `end`."""
        if end >= self.next_number:
            return {stream: each.top for stream, each in self._now.items()}
        tops = {stream: self._gone[stream].top for stream in self._sources}
        seen: set[str] = set()
        for entry in self._backwards(end):
            if entry.stream not in seen:
                seen.add(entry.stream)
                tops[entry.stream] = entry.top
            if len(seen) == len(tops):
                break
        for entry in self._onwards(end):
            if entry.stream not in seen:  # all of them came later: the first knows what was before
                seen.add(entry.stream)
                tops[entry.stream] = entry.before
            if len(seen) == len(tops):
                break
        return tops

    def _least(self, tops: Mapping[str, int]) -> int:
        marks = [
            NEVER if top == NEVER else top - round(self._sources[name][0].lateness_s * 1e6)
            for name, top in tops.items()
        ]
        return min(marks)

    def _not_late(self, entry: Entry) -> tuple[NDArray[np.bool_], Times]:
        """Tells which tuples of a train are not late, and gives the times of all."""
        times = self._times_of(entry.stream, entry.train)
        if not self._has_time(entry.stream):
            return np.ones(entry.tuples, dtype=np.bool_), times
        lateness = round(self._sources[entry.stream][0].lateness_s * 1e6)
        tops = np.maximum.accumulate(np.concatenate([[entry.before], times[:-1]]))
        marks = np.where(tops == NEVER, NEVER, tops - lateness)
        return (times != NEVER) & (times >= marks), times

    def _has_time(self, stream: str) -> bool:
        return self._sources[stream][0].event_time is not None

    def _times_of(self, stream: str, train: int) -> Times:
        """Gives the times of a train's tuples, in microseconds since 1970."""
        key = stream, train
        if key not in self._times:
            described, log = self._sources[stream]
            table = log.table(train, train + 1)
            if described.event_time is None:
                return np.full(table.num_rows, NEVER)
            name = next(n for n in table.column_names if n.lower() == described.event_time.lower())
            column: Any = table[name]
            microseconds = column.cast(pa.timestamp("us", tz=column.type.tz)).cast(pa.int64())
            self._times[key] = microseconds.fill_null(NEVER).to_numpy()
        return self._times[key]


def _after(stands: Mapping[str, Stand], entries: Sequence[Entry]) -> dict[str, Stand]:
    """Gives where streams stand behind some more trains."""
    found = dict(stands)
    for each in entries:
        old, heard = found[each.stream], each.train >= 0
        found[each.stream] = Stand(
            each.train + 1 if heard else old.train, each.top, each.top if heard else old.heard
        )
    return found


def _train_of(entry: Entry) -> Train:
    return Train(entry.number, entry.tuples, 0, entry.arrived_at_s, entry.arrived_at_s)


def windows_of(window: Window, place: Times, after: int, upto: int) -> tuple[Times, Times]:
    """Gives for tuples at some places the windows that end in (after, upto]: tuple and end.

    >>> ten = Window(axis="time", size=10, slide=5)
    >>> [each.tolist() for each in windows_of(ten, np.array([3, 7]), 0, 15)]
    [[0, 0, 1, 1], [5, 10, 10, 15]]
    """
    slide, offset = window.slide or window.size, window.offset
    lowest = np.maximum(place, after) if after != NEVER else place
    first = (lowest - offset) // slide + 1
    last = (np.minimum(place + window.size, upto) - offset) // slide
    counts = np.maximum(0, last - first + 1)
    tuples = np.repeat(np.arange(len(place)), counts)
    begins = np.cumsum(counts) - counts
    ends = np.repeat(first - begins, counts) + np.arange(counts.sum())
    return tuples, ends * slide + offset


def _first_end(window: Window, after: int) -> int:
    """Gives the first end of a window behind a place."""
    slide = window.slide or window.size
    return ((after - window.offset) // slide + 1) * slide + window.offset
