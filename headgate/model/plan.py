"""Plan and step: what a policy returns. Box call: what the engine is asked to do."""

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

Lane = Literal["driver", "job"]
"""How the Spark engine runs a call: rows through the driver, or a job."""

LANES: tuple[Lane, ...] = ("driver", "job")

Share = Literal["class", "all", "none"]
"""Between which queries equal parts run once: those of one class, all, or none."""

ALL = 2**62
"""As many tuples as are pending."""


class Step(NamedTuple):
    """One unit and how many of its pending tuples it should take, at the most.

    `continues` says that it belongs to the superbox of the step before: nothing new was decided for
    it, and its tuples are in memory already (Aurora §4.1).
    """

    unit: int
    tuples: int = ALL
    continues: bool = False


@dataclass(frozen=True, slots=True)
class BoxCall:
    """Units that run as one call over the same trains, and pay the overhead of a call once.

    Trains are counted from the first that the scheduler heard of; `first_train` is included,
    `end_train` is not.

    Args:
        lane: the lane that is expected to be quicker. The engine runs a job where a plan of the
            call cannot run in the driver.
        orders: by unit, the order that its conditions run in, where that is not the written one.
    """

    number: int
    units: tuple[int, ...]
    stream: int
    first_train: int
    end_train: int
    tuples: int
    lane: Lane = "driver"
    orders: tuple[tuple[int, tuple[int, ...]], ...] = field(default=(), compare=False)
