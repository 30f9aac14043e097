"""What a source is that the driver asks itself: tuples, and where it then stands."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from headgate.spark.log.dead_letters import Letter

MOST_TUPLES = 100_000
"""Tuples of one poll, about; a file is never cut."""


@dataclass(frozen=True)
class Polled:
    """What a source had: tuples, where it then stands, and what could not be read."""

    table: pa.Table
    position: Mapping[str, str]
    letters: tuple[Letter, ...] = ()


class Source(Protocol):
    """Something with tuples that can be asked for more and told where it stood."""

    def resume(self, position: Mapping[str, str]) -> None:
        """Goes on behind everything that was polled and journalled."""

    def poll(self) -> Polled | None:
        """Gives what is new; None when nothing is. Polled again before `taken`, it is the same."""

    def taken(self, polled: Polled) -> None:
        """Hears that the journal has it."""

    def close(self) -> None:
        """Is asked no more."""
        return  # most have nothing to give back
