"""The protocol of sources that the driver polls: each returns tuples and its new position."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from headgate.spark.log.dead_letters import Letter

MOST_TUPLES = 100_000
"""About the most tuples of one poll; a file is never split."""


@dataclass(frozen=True)
class Polled:
    """The result of a poll: tuples, the position after them, and records that could not be read."""

    table: pa.Table
    position: Mapping[str, str]
    letters: tuple[Letter, ...] = ()


class Source(Protocol):
    """A source of tuples that is polled, and that resumes at a journaled position."""

    def resume(self, position: Mapping[str, str]) -> None:
        """Continue after everything that was polled and journaled."""

    def poll(self) -> Polled | None:
        """Return what is new, or None. A poll before `taken` returns the same tuples again."""

    def taken(self, polled: Polled) -> None:
        """Discard what `poll` returned, and move on: the journal has committed it."""

    def close(self) -> None:
        """Release what the source holds; it is not polled again."""
        return  # most sources hold nothing
