"""The trains that a timeline has taken in, in order, and how far its streams had come with each."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from headgate.model.window_ends import NEVER, Times
from headgate.spark.event_time.timeline_entries import CLOCK, Entries, Entry, Stand
from headgate.spark.log.journal import Journal


class Course:
    """Is in memory as it is in the journal; whoever uses it sees to it that nobody else does."""

    def __init__(self, journal: Journal, timeline: str, streams: Sequence[str]) -> None:
        self._kept = Entries(journal, timeline)
        self.entries = self._kept()
        self.first = self.entries[0].number if self.entries else journal.next_train(timeline)
        nothing = dict.fromkeys(streams, Stand(0, NEVER, NEVER, NEVER))
        self._gone = {**nothing, **self._kept.stands()}
        self.now = _after(self._gone, self.entries)
        """Where its streams stand behind the last train."""

    @property
    def next_number(self) -> int:
        return self.first + len(self.entries)

    def append(self, entry: Entry, durable: bool) -> None:
        """Takes a train in."""
        self._kept.add(entry, durable)
        self.entries.append(entry)
        self.now = _after(self.now, [entry])

    def drop(self, before: int) -> None:
        """Forgets trains below a number."""
        if before > self.first:
            self._gone = _after(self._gone, self.between(self.first, before))
            self._kept.drop(before, self._gone)
            del self.entries[: before - self.first]
            self.first = before

    def between(self, first: int, end: int) -> list[Entry]:
        """Gives trains first, ..., end − 1, as far as they are there."""
        return self.entries[max(0, first - self.first) : max(0, end - self.first)]

    def backwards(self, end: int) -> Iterator[Entry]:
        """Gives the trains before one, the last first."""
        for at in range(min(end, self.next_number) - self.first - 1, -1, -1):
            yield self.entries[at]

    def onwards(self, first: int) -> Iterator[Entry]:
        """Gives the trains from one on."""
        for at in range(max(0, first - self.first), len(self.entries)):
            yield self.entries[at]

    def came(self, stream: str, end: int) -> int:
        """Counts the tuples of a stream that came before train `end`."""
        for each in self.backwards(end):
            if each.stream == stream and each.train >= 0:
                return each.first_tuple + each.tuples
        later = (e.first_tuple for e in self.onwards(end) if e.stream == stream and e.train >= 0)
        return next(later, 0)

    def seen(self, stream: str, numbers: Times, other: str) -> Times:
        """Counts for tuples of a stream, by number, those of another that had come by then."""
        if other == stream:
            return numbers + 1
        came, firsts, counts = self.came(other, self.first), [0], [0]
        for each in self.entries:
            if each.train >= 0 and each.stream == other:
                came = each.first_tuple + each.tuples
            elif each.train >= 0 and each.stream == stream:
                firsts.append(each.first_tuple)
                counts.append(came)
        at = np.searchsorted(np.array(firsts), numbers, side="right") - 1
        found: Times = np.array(counts, dtype=np.int64)[at]
        return found

    def tops(self, end: int) -> dict[str, int]:
        """Gives the greatest time so far of every stream, before train `end`."""
        if end >= self.next_number:
            return {stream: each.top for stream, each in self.now.items()}
        tops = {stream: each.top for stream, each in self._gone.items()}
        seen: set[str] = set()
        for entry in self.backwards(end):
            if entry.stream not in seen:
                seen.add(entry.stream)
                tops[entry.stream] = entry.top
            if len(seen) == len(tops):
                break
        for entry in self.onwards(end):
            if entry.stream not in seen:  # all of them came later: the first knows what was before
                seen.add(entry.stream)
                tops[entry.stream] = entry.before
            if len(seen) == len(tops):
                break
        return tops


def _after(stands: Mapping[str, Stand], entries: Sequence[Entry]) -> dict[str, Stand]:
    """Gives where streams stand behind some more trains."""
    found = dict(stands)
    for each in entries:
        old = found[each.stream]
        found[each.stream] = Stand(
            each.train + 1 if each.train >= 0 else old.train,
            each.top,
            old.heard if each.train == CLOCK else each.top,
            each.reach,
        )
    return found
