"""What a side has committed: the same reader for both, over files alone.

A result is visible from the rename that commits it: Headgate renames the result file itself, Spark
the entry of the sink's log, `_spark_metadata/N`, that names its files. A rename changes the inode's
ctime; mtime remains that of the last write before. So the ctime of the committing file is the
instant on both sides, and neither is asked for its opinion (what Headgate reports of itself is 4 ms
later, the median of 48 commits). What either does afterwards, Headgate's confirmation in its
journal and the entry in Spark's commit log, counts for nobody.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlparse

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from headgate.model.arrays import Floats
from offered import Instants

COMPACT = ".compact"


@dataclass(frozen=True)
class Commit:
    """Files that became visible together."""

    visible_at_s: float
    files: tuple[Path, ...]


@dataclass(frozen=True)
class Measured:
    """A query's rows of the window: how many should be, are, are too many, and their times."""

    expected: int
    committed: int
    surplus: int
    responses_s: Floats


def commits_of(side: str, sink: Path) -> Iterator[Commit]:
    """Gives the commits of a query's results folder, in order."""
    return _renamed(sink) if side.startswith("headgate") else _logged(sink / "_spark_metadata")


def measured(
    commits: Iterable[Commit], expected_us: Instants, window_us: tuple[int, int], until_s: float
) -> Measured:
    """Holds a query's commits against the answer; rows visible after `until_s` do not count."""
    instants, responses = [], []
    for commit in commits:
        if commit.visible_at_s > until_s:
            continue
        for file in commit.files:
            at_us = _instants(file)
            at_us = at_us[(at_us >= window_us[0]) & (at_us < window_us[1])]
            instants.append(at_us)
            responses.append(commit.visible_at_s - at_us / 1e6)
    rows_us = np.concatenate([*instants, np.zeros(0, np.int64)])
    right = _common(rows_us, expected_us)
    return Measured(
        expected=expected_us.size,
        committed=right,
        surplus=rows_us.size - right,
        responses_s=np.concatenate([*responses, np.zeros(0)]),
    )


def _common(rows_us: Instants, others_us: Instants) -> int:
    """Counts the rows that are in both; times may come several times."""
    times, counts = np.unique(rows_us, return_counts=True)
    other_times, other_counts = np.unique(others_us, return_counts=True)
    _, at, other_at = np.intersect1d(times, other_times, assume_unique=True, return_indices=True)
    return int(np.minimum(counts[at], other_counts[other_at]).sum())


def _renamed(folder: Path) -> Iterator[Commit]:
    for file in sorted(folder.glob("[!._]*.parquet")):
        yield Commit(file.stat().st_ctime, (file,))


def _logged(log: Path) -> Iterator[Commit]:
    """Reads Spark's log of a file sink; a compacted entry repeats all before it."""
    entries = [file for file in log.glob("[!.]*") if file.name.removesuffix(COMPACT).isdecimal()]
    seen: set[str] = set()
    for entry in sorted(entries, key=lambda file: int(file.name.removesuffix(COMPACT))):
        lines = entry.read_text().splitlines()[1:]
        named = [line["path"] for line in map(json.loads, lines) if line["action"] == "add"]
        new = [path for path in named if path not in seen]
        seen.update(new)
        files = tuple(Path(unquote(urlparse(path).path)) for path in new)
        yield Commit(entry.stat().st_ctime, files)


def _instants(file: Path) -> Instants:
    column = pq.read_table(file, columns=["ts"])["ts"]
    instants: Instants = column.cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_numpy()
    return instants
