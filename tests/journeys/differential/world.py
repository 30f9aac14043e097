"""The tuples of all streams: as files for Headgate, as frames for the oracle."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from differential.columns import LAYOUTS, Layout, quoted
from differential.literals import NOTHING, value
from headgate import Headgate, Stream, View

SECOND = 1_000_000
LATENESS_S = 3
ROWS, FILES = 40, 3

CHANGES = {
    "UTC": (1_711_846_800, 1_729_990_800),
    "Europe/Berlin": (1_711_846_800, 1_729_990_800),  # 31 March and 27 October 2024, 01:00 UTC
    "America/New_York": (1_710_054_000, 1_730_613_600),  # 10 March 07:00, 3 November 2024 06:00 UTC
}
"""Session time zones, each with the seconds since 1970 at which its clocks change in 2024."""

BATCH = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}
"""Settings of the oracle's session: one partition, so that rows keep the order of the log."""

INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Without code generation Spark answers four times as fast over some tens of rows. If Headgate
differs, the answer with code generation counts: Spark's two ways do not always agree."""

ALL_DIGITS = "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"
"""The timestamp format of text files here; Spark's default drops microseconds."""

STORED = "places"
STORED_ROWS = (
    "SELECT * FROM VALUES ('a', 'Ah', 0), ('b', 'Be', 1), ('b', 'Bee', 2), ('z', 'Zet', 9),"
    " (NULL, 'none', NULL) AS p(k, label, g)"
)


@dataclass(frozen=True)
class Tuple:
    """A tuple of a stream: its number, its event time in microseconds, its values as SQL."""

    number: int
    micros: int | None
    values: tuple[str, ...]


@dataclass
class World:
    """Streams with seeded rows around both clock changes of a time zone.

    `session` is for the oracle, `users` is passed to Headgate; both have the time zone.
    """

    spark: SparkSession
    folder: Path
    seed: int
    zone: str = "Europe/Berlin"
    layouts: Mapping[str, Layout] = field(default_factory=lambda: LAYOUTS)
    _frames: dict[str, DataFrame] = field(default_factory=dict)
    _written: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.session, self.users = self.spark.newSession(), self.spark.newSession()
        for session in (self.session, self.users):
            session.conf.set("spark.sql.session.timeZone", self.zone)
            session.conf.set("spark.sql.timeType.enabled", "true")
        for key, setting in {**BATCH, **INTERPRETED}.items():
            self.session.conf.set(key, setting)
        places = str(self.folder / STORED)
        self.session.sql(STORED_ROWS).coalesce(1).write.mode("overwrite").parquet(places)
        self.session.sql(f"DROP TABLE IF EXISTS {STORED}")
        self.session.sql(f"CREATE TABLE {STORED} USING parquet LOCATION '{places}'")

    @contextmanager
    def generating_code(self) -> Iterator[None]:
        """Let the oracle's session generate code, as Spark does by default."""
        for key in INTERPRETED:
            self.session.conf.unset(key)
        try:
            yield
        finally:
            for key, setting in INTERPRETED.items():
                self.session.conf.set(key, setting)

    @cached_property
    def tuples(self) -> Mapping[str, list[Tuple]]:
        """The tuples of every stream, in the order of the log."""
        tuples: dict[str, list[Tuple]] = {}
        for name, layout in self.layouts.items():
            if layout.base:
                tuples[name] = [row for row in tuples[layout.base] if layout.keeps(row.number)]
            else:
                drawn = _tuples(Random(f"{self.seed} {name}"), layout, CHANGES[self.zone])
                tuples[name] = list(drawn)
        return tuples

    def in_time(self, stream: str) -> tuple[list[Tuple], int]:
        """Return the tuples that are not late, and the watermark after the last one.

        A view has the watermark of its base, which counts the tuples that the view leaves out.
        """
        layout = self.layouts[stream]
        if not layout.base:
            return _in_time(self.tuples[stream])
        rows, mark = self.in_time(layout.base)
        return [row for row in rows if layout.keeps(row.number)], mark

    def with_bases(self, streams: Iterable[str]) -> list[str]:
        """Return the streams and their bases, each view after its base."""
        ordered: dict[str, None] = {}
        for stream in sorted(streams):
            if base := self.layouts[stream].base:
                ordered.update(dict.fromkeys(self.with_bases([base])))
            ordered[stream] = None
        return list(ordered)

    def files(self, stream: str) -> list[list[Tuple]]:
        """Return a stream's tuples by file; each file becomes a train."""
        rows = self.tuples[stream]
        cuts = [number * len(rows) // FILES for number in range(FILES + 1)]
        return [rows[start:end] for start, end in pairwise(cuts)]

    def frame(self, stream: str) -> DataFrame:
        """Return all tuples of a stream in one partition, in the order of the log."""
        layout, rows = self.layouts[stream], self.tuples[stream]
        if stream not in self._frames and layout.base:
            base = f"all_of_{layout.base}"
            self.frame(layout.base).createOrReplaceTempView(base)
            self._frames[stream] = self.session.sql(layout.view_over(base))
        elif stream not in self._frames:
            # The columns of a stream may be NULL. Without a row of NULLs, Spark would see that some
            # of these columns never are, and drop expressions that fail over a stream.
            empty = f"({', '.join(['NULL'] * len(layout.all_columns))})"
            lines = ", ".join([*(f"({', '.join(row.values)})" for row in rows), empty])
            names = ", ".join(map(quoted, layout.all_columns))
            values = self.session.sql(f"SELECT * FROM VALUES {lines} AS rows({names})")
            values = values.where("id IS NOT NULL")
            # `coalesce` keeps Spark from evaluating expressions ahead of the job, as it does over
            # local rows.
            self._frames[stream] = values.coalesce(1)
        return self._frames[stream]

    def add_to(self, gate: Headgate, stream: str, *, whole: bool = False) -> None:
        """Add a stream to a gate; its files are in the world's folder.

        Args:
            whole: whether all tuples are one train, instead of one train for each file; of a
                stream that Structured Streaming reads, each file is a train all the same.
        """
        layout = self.layouts[stream]
        if layout.base:
            gate.add_view(View(name=stream, sql=layout.view_over(layout.base), event_time="ts"))
            return
        more: dict[str, Any] = {
            "format": "python",
            "options": {"rowsPerPoll": "1000" if whole else "15"},
        }
        if layout.source != "python":
            format = layout.source if layout.source in ("csv", "json") else "parquet"
            path = str(self._write(stream))
            # Structured Streaming reads the files of one batch in any order.
            files = str(FILES if whole and layout.source != "spark" else 1)
            more = {"format": format, "options": {"path": path, "maxFilesPerTrigger": files}}
        described = Stream(
            name=stream, schema=layout.ddl, event_time="ts", quiet_s=None, lateness_s=LATENESS_S,
            **more,
        )  # fmt: skip
        if layout.source == "python":
            rows = [
                {name: _aware(cell) for name, cell in row.asDict().items()}
                for row in self.frame(stream).collect()
            ]
            gate.add_stream(described, rows=lambda first: iter(rows[first:]))
        else:
            gate.add_stream(described)

    def _write(self, stream: str) -> Path:
        """Write a stream's files once; Spark writes the types that Arrow's Parquet lacks."""
        path = self.folder / stream
        if stream in self._written:
            return path
        self._written.add(stream)
        path.mkdir(exist_ok=True)
        frame, source = self.frame(stream), self.layouts[stream].source
        for number, rows in enumerate(self.files(stream)):
            part = frame.where(f"id >= {rows[0].number} AND id <= {rows[-1].number}")
            file = path / f"{number:04d}.{source if source in ('csv', 'json') else 'parquet'}"
            if source == "arrow":
                pq.write_table(part.toArrow(), file)
                continue
            hidden = path / f"_{number}"
            writer = part.write.option("compression", "none").option("timestampFormat", ALL_DIGITS)
            writer.format("parquet" if source == "spark" else source).save(str(hidden))
            next(hidden.glob("part-*")).rename(file)
        return path


def _tuples(random: Random, layout: Layout, changes: tuple[int, int]) -> Iterator[Tuple]:
    """Draw tuples around each clock change: mostly in order, some late, some without a time."""
    for number, (seconds, values) in enumerate(layout.rows):
        micros = None if seconds is None else int((changes[0] + seconds) * SECOND)
        typed = zip(values, layout.columns.values(), strict=True)
        casts = (f"CAST({one} AS {kind})" if kind != "void" else "NULL" for one, kind in typed)
        yield Tuple(number, micros, (*_keys(number, micros), *casts))
    if layout.rows:
        return
    number = 0
    for change in changes:
        now = (change - 30) * SECOND
        for _ in range(ROWS // 2):
            now += random.choice([0, 1, 500_000, SECOND, 2 * SECOND, 5 * SECOND, 10 * SECOND])
            delay = random.choice([0] * 7 + [SECOND, 2_500_000, 20 * SECOND])
            micros = None if random.random() < NOTHING / 3 else now - delay
            yield Tuple(number, micros, _values(random, layout, number, micros))
            number += 1


def _values(random: Random, layout: Layout, number: int, micros: int | None) -> tuple[str, ...]:
    values = [*_keys(number, micros)]
    for name, kind in layout.columns.items():
        if name in layout.pools and random.random() >= NOTHING:
            values.append(f"CAST({random.choice(layout.pools[name])} AS {kind})")
        else:
            values.append(value(random, kind, layout.extremes))
    return tuple(values)


def _aware(value: Any) -> Any:
    """Return a timestamp with a zone; PySpark collects it without one, in the process's zone."""
    return value.astimezone(UTC) if isinstance(value, datetime) else value


def _keys(number: int, micros: int | None) -> tuple[str, str]:
    time = "CAST(NULL AS TIMESTAMP)" if micros is None else f"timestamp_micros({micros}L)"
    return f"{number}L", time


def _in_time(rows: list[Tuple]) -> tuple[list[Tuple], int]:
    punctual: list[Tuple] = []
    mark = -(2**62)
    for row in rows:
        if row.micros is not None:
            if row.micros >= mark:
                punctual.append(row)
            mark = max(mark, row.micros - LATENESS_S * SECOND)
    return punctual, mark
