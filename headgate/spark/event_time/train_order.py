"""The trains of a timeline in order, with the progress of its streams after each train."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from headgate.model.window import Axis
from headgate.model.window_ends import NEVER, Times
from headgate.spark.event_time.timeline_entries import CLOCK, Entry, Stand, TimelineEntries
from headgate.spark.journal.journal import Journal


class TrainOrder:
    """The entries of a timeline, in memory as in the journal; the caller must hold a lock."""

    def __init__(self, journal: Journal, timeline: str, streams: Sequence[str]) -> None:
        self._journaled = TimelineEntries(journal, timeline)
        self.entries = self._journaled()
        self.first = self.entries[0].number if self.entries else journal.next_train(timeline)
        nothing = dict.fromkeys(streams, Stand(0, NEVER, NEVER, NEVER))
        self._before_first = {**nothing, **self._journaled.stands()}
        self.now = _after(self._before_first, self.entries)
        """How far its streams have come with the last entry."""
        numbers = {stream: {train.number for train in journal.trains(stream)} for stream in streams}
        # While no query had windows, nothing prevented the log from dropping trains.
        self.lost = {
            entry.number
            for entry in self.entries
            if entry.train >= 0 and entry.train not in numbers[entry.stream]
        }
        """The entries whose trains are not in the log."""
        self._drop_lost()
        self.needed = self.first
        """The first entry that a window may need; earlier ones are kept for new queries."""

    def _drop_lost(self) -> None:
        """Drop lost trains at the beginning: queries that continue after them have missed them."""
        last = -1
        for entry in self.entries:
            if entry.number in self.lost:
                last = entry.number
            elif entry.train >= 0:
                break
        self.drop(last + 1)

    @property
    def next_number(self) -> int:
        return self.first + len(self.entries)

    def append(self, entry: Entry, durable: bool) -> None:
        """Append an entry, here and in the journal."""
        self._journaled.add(entry, durable)
        self.entries.append(entry)
        self.now = _after(self.now, [entry])

    def drop(self, before: int) -> None:
        """Drop entries below a number, here and in the journal."""
        if before > self.first:
            self._before_first = _after(self._before_first, self.between(self.first, before))
            self._journaled.drop(before, self._before_first)
            del self.entries[: before - self.first]
            self.first = before

    def between(self, first: int, end: int) -> list[Entry]:
        """Return the entries first, ..., end − 1, as far as they exist."""
        return self.entries[max(0, first - self.first) : max(0, end - self.first)]

    def backwards(self, end: int) -> Iterator[Entry]:
        """Yield the entries before `end`, the last first."""
        for index in range(min(end, self.next_number) - self.first - 1, -1, -1):
            yield self.entries[index]

    def onwards(self, first: int) -> Iterator[Entry]:
        """Yield the entries from `first` on."""
        for index in range(max(0, first - self.first), len(self.entries)):
            yield self.entries[index]

    def tuples_before(self, stream: str, end: int) -> int:
        """Count the tuples of a stream that arrived before train `end`."""
        for entry in self.backwards(end):
            if entry.stream == stream and entry.train >= 0:
                return entry.first_tuple + entry.tuples
        later = (e.first_tuple for e in self.onwards(end) if e.stream == stream and e.train >= 0)
        return next(later, 0)

    def dropped_to(self, stream: str, axis: Axis) -> int:
        """Return the last place of a stream's tuples that were dropped; NEVER if there is none."""
        if axis == "time":
            return self._before_first[stream].reach
        return self.tuples_before(stream, self.first) - 1 if self.first else NEVER

    def seen(self, stream: str, numbers: Times, other: str) -> Times:
        """Return how many tuples of `other` had arrived when each tuple of a stream arrived.

        Args:
            numbers: of the tuples in their stream.
        """
        if other == stream:
            return numbers + 1
        count, firsts, counts = self.tuples_before(other, self.first), [0], [0]
        for entry in self.entries:
            if entry.train >= 0 and entry.stream == other:
                count = entry.first_tuple + entry.tuples
            elif entry.train >= 0 and entry.stream == stream:
                firsts.append(entry.first_tuple)
                counts.append(count)
        indexes = np.searchsorted(np.array(firsts), numbers, side="right") - 1
        seen: Times = np.array(counts, dtype=np.int64)[indexes]
        return seen

    def tops(self, end: int) -> dict[str, int]:
        """Return the time that each stream had reached before train `end`."""
        if end >= self.next_number:
            return {stream: stand.top for stream, stand in self.now.items()}
        tops = {stream: stand.top for stream, stand in self._before_first.items()}
        seen: set[str] = set()
        for entry in self.backwards(end):
            if entry.stream not in seen:
                seen.add(entry.stream)
                tops[entry.stream] = entry.top
            if len(seen) == len(tops):
                break
        for entry in self.onwards(end):
            if entry.stream not in seen:
                # All its entries come later: the first has the time before them.
                seen.add(entry.stream)
                tops[entry.stream] = entry.before
            if len(seen) == len(tops):
                break
        return tops


def _after(stands: Mapping[str, Stand], entries: Sequence[Entry]) -> dict[str, Stand]:
    """Return how far streams have come after some more entries."""
    new_stands = dict(stands)
    for entry in entries:
        old = new_stands[entry.stream]
        new_stands[entry.stream] = Stand(
            entry.train + 1 if entry.train >= 0 else old.train,
            entry.top,
            old.heard if entry.train == CLOCK else entry.top,
            entry.reach,
        )
    return new_stands
