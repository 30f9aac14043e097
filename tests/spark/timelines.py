"""A timeline over streams in memory, which can be restarted from the journal."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from headgate.language.kinds.closing import ClosingWindows
from headgate.model.kind import Kind
from headgate.model.stream import Stream
from headgate.model.window import Input, Window
from headgate.spark.event_time.timeline import Timeline
from headgate.spark.journal.journal import Journal
from headgate.spark.journal.journal_rows import NewTrain, Train

SECOND = 1_000_000


class Log:
    """The log of a stream in memory, whose trains are in the journal."""

    def __init__(self, name: str, journal: Journal, timed: bool = True) -> None:
        self.name, self._journal, self._timed = name, journal, timed
        self.tables: list[Any] = []

    @property
    def arrow_schema(self) -> pa.Schema:
        return pa.schema([("ts", pa.timestamp("us", tz="UTC")), ("n", pa.int64())])

    def add(self, *times: int | None) -> Train:
        column = pa.array(times, pa.int64()).cast(pa.timestamp("us", tz="UTC"))
        self.tables.append(pa.table({"ts": column, "n": pa.array(range(len(times)))}))
        train = Train(len(self.tables) - 1, len(times), 8, len(self.tables), len(self.tables))
        self._journal.add_trains([NewTrain(self.name, train, train.number)])
        return train

    def table(self, first: int, end: int) -> pa.Table:
        return pa.concat_tables(self.tables[first:end])


class World:
    """Streams and their timeline, which can be restarted from the journal."""

    def __init__(self, folder: Path, *streams: Stream) -> None:
        self.folder, self.streams = folder, streams
        self.journal = Journal(folder)
        self.logs = {source.name: Log(source.name, self.journal) for source in streams}
        self.heard: list[Train] = []
        self.kinds: list[Kind] = []
        self.aside: list[tuple[str, int, int, list[bool]]] = []
        self.can_set_aside = True
        self.begin()

    def begin(self) -> None:
        sources: Any = {source.name: (source, self.logs[source.name]) for source in self.streams}
        self.timeline = Timeline(
            "t", self.journal, sources, lambda *new: self.heard.extend(new), self._set_aside
        )
        for number, kind in enumerate(self.kinds):
            self.timeline.reads(f"q{number}", kind)
        self.timeline.catch_up()

    def _set_aside(self, stream: str, train: int, first: int, late: Any, times: Any) -> bool:
        if self.can_set_aside:
            self.aside.append((stream, train, first, late.tolist()))
        return self.can_set_aside

    def reads(self, kind: Kind) -> None:
        self.timeline.reads(f"q{len(self.kinds)}", kind)
        self.kinds.append(kind)

    def take(self, stream: str, *times: int | None) -> None:
        self.timeline.take(stream, self.logs[stream].add(*times))

    @property
    def end(self) -> int:
        return self.timeline.next_number


Make = Callable[..., World]


def stream(
    name: str, lateness_s: float = 0, quiet_s: float | None = 1.0, max_delay_s: float | None = None
) -> Stream:
    return Stream(name=name, format="parquet", event_time="ts", lateness_s=lateness_s,
                  quiet_s=quiet_s, max_delay_s=max_delay_s)  # fmt: skip


def over(
    size: int,
    slide: int | None = None,
    axis: Any = "time",
    kind: type[Kind] = ClosingWindows,
    streams: Sequence[str] = ("a",),
    **more: Any,
) -> Kind:
    window = Window(axis=axis, size=size, slide=slide)
    inputs = tuple(Input(stream=name, view=name, window=window) for name in streams)
    return kind(inputs=inputs, **more)
