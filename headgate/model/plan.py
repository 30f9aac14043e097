"""Plan and step: what a policy returns. Box call: what the engine runs."""

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

Lane = Literal["driver", "job"]
"""How the Spark engine runs a call: rows through the driver, or a job."""

LANES: tuple[Lane, ...] = ("driver", "job")

Share = Literal["class", "all", "none"]
"""Which queries share equal parts, so that these run once: those of one class, all, or none."""

ALL = 2**62
"""As many tuples as are pending."""


class Step(NamedTuple):
    """One unit and the maximum number of its pending tuples to process.

    `continues` is True if the step belongs to the superbox of the step before: it needs no decision
    of its own, and its tuples are already in memory (Aurora §4.1).
    """

    unit: int
    tuples: int = ALL
    continues: bool = False


@dataclass(frozen=True, slots=True)
class BoxCall:
    """Units that run as one call over the same trains, and pay the overhead of a call once.

    Trains are numbered from the first one that the scheduler has seen; `first_train` is included,
    `end_train` is not.

    Args:
        lane: the lane that is expected to be faster. The engine runs a job if a plan of the call
            cannot run in the driver.
        orders: by unit, the order in which its conditions run, if it is not the written one.
    """

    number: int
    units: tuple[int, ...]
    stream: int
    first_train: int
    end_train: int
    tuples: int
    lane: Lane = "driver"
    orders: tuple[tuple[int, tuple[int, ...]], ...] = field(default=(), compare=False)
