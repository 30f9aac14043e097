"""Compaction: which files of a folder are merged next."""

from collections.abc import Sequence
from pathlib import Path

FEW = 16
"""So many files of each tier are not merged: a row is written again once for so many more."""

TIERS = 4
"""Each tier has files of up to FEW times the size of the tier below; the largest is the target."""


def chosen(files: Sequence[tuple[Path, int]], target_bytes: float) -> list[Path]:
    """Return the files to merge next; none if there are few small ones.

    They are neighbors, so that the result has their range of trains, and the newest files, since
    these are small: a large file is written again only together with many of its size.

    Args:
        files: names and sizes, in the order of their trains.
        target_bytes: a file of this size is large enough.

    >>> files = [(Path(str(number)), 1000) for number in range(40)]
    >>> len(chosen(files, 1e6)), len(chosen(files[:15], 1e6)), len(chosen(files * 2, 1500))
    (40, 0, 2)
    >>> len(chosen([(Path("large"), 900_000), *files], 1e6))
    40
    """
    for tier in reversed(range(TIERS)):
        limit_bytes = target_bytes / FEW ** (TIERS - 1 - tier)
        newest: list[tuple[Path, int]] = []
        for file, count in reversed(files):
            if count >= limit_bytes:
                break
            newest.insert(0, (file, count))
        if len(newest) >= FEW * (tier + 1):
            return _up_to(newest, target_bytes)
    return []


def _up_to(files: Sequence[tuple[Path, int]], target_bytes: float) -> list[Path]:
    """Return the oldest files that together have the target size, or all."""
    names: list[Path] = []
    total_bytes = 0
    for file, count in files:
        names.append(file)
        total_bytes += count
        if total_bytes >= target_bytes:
            break
    return names if len(names) > 1 else []
