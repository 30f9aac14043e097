"""A box call as the Spark engine runs it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from headgate.model.network.network import Path
from headgate.model.plan import Lane


@dataclass(frozen=True)
class Work:
    """The paths that a box call runs, and the trains that it runs them over."""

    paths: tuple[Path, ...]
    first_train: int
    end_train: int
    tuples: int
    lane: Lane = "driver"
    orders: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """By query, the order of its conditions where that differs from the written one."""
