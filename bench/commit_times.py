"""What a side has committed, read from its files alone, by the same code for both sides.

A result becomes visible with the rename that commits it. Headgate renames the result file itself;
Spark renames the entry of the sink's log, `_spark_metadata/N`, that names its files. A rename
changes the inode's ctime; mtime remains that of the last write. So on both sides the ctime of the
committing file is the instant of the commit, and no side reports its own times (those that Headgate
reports are 4 ms later, the median of 48 commits). What a side does afterwards does not count:
neither Headgate's confirmation in its journal nor the entry in Spark's commit log.
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
from input_tuples import Instants

COMPACT = ".compact"


@dataclass(frozen=True)
class Commit:
    """Files that became visible together."""

    visible_at_s: float
    files: tuple[Path, ...]


@dataclass(frozen=True)
class Measured:
    """A query's rows in the measured window: how many are due, right and surplus, and their times.

    Args:
        committed: the committed rows that are in the expected answer.
        surplus: the committed rows that are not.
    """

    expected: int
    committed: int
    surplus: int
    responses_s: Floats


def commits_of(side: str, sink: Path) -> Iterator[Commit]:
    """Return the commits in a query's results folder, in order."""
    return _renamed(sink) if side.startswith("headgate") else _logged(sink / "_spark_metadata")


def measured(
    commits: Iterable[Commit], expected_us: Instants, window_us: tuple[int, int], until_s: float
) -> Measured:
    """Compare a query's commits with the answer; rows visible after `until_s` do not count."""
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
    """Count the rows that are in both. A time may occur several times."""
    times, counts = np.unique(rows_us, return_counts=True)
    other_times, other_counts = np.unique(others_us, return_counts=True)
    _, places, other_places = np.intersect1d(
        times, other_times, assume_unique=True, return_indices=True
    )
    return int(np.minimum(counts[places], other_counts[other_places]).sum())


def _renamed(folder: Path) -> Iterator[Commit]:
    for file in sorted(folder.glob("[!._]*.parquet")):
        yield Commit(file.stat().st_ctime, (file,))


def _logged(log: Path) -> Iterator[Commit]:
    """Yield the commits in the log of a Spark file sink; a compacted entry repeats earlier ones."""
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
