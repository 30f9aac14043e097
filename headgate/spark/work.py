"""A box call in the words of Spark."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from headgate.model.network import Path
from headgate.model.plan import Lane


@dataclass(frozen=True)
class Work:
    """A call in the words of Spark: which paths, over which trains."""

    paths: tuple[Path, ...]
    first_train: int
    end_train: int
    tuples: int
    lane: Lane = "driver"
    orders: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Orders of conditions that are not as written, by query."""
