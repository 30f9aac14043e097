"""What queries did: the tallies and sums of one, or of several together."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from headgate.metrics.tally import Tally
from headgate.model.arrays import Floats

TUPLES_IN, SHED, BUSY_S, PENDING_AREA, BACKFILLED, IDLE_S, LOST, WORTH, DUE = range(9)
"""Sums that a unit has: WORTH is the utility of the results that were DUE, both times weight.
LOST is the part of DUE of tuples that were shed. IDLE_S is what results of unions waited."""


@dataclass
class QueryTotals:
    """What queries did while they were in a class that they have left, or before they left."""

    responses: Tally = field(default_factory=Tally)
    slowdowns: Tally = field(default_factory=Tally)
    tardiness: Tally = field(default_factory=Tally)
    sums: Floats = field(default_factory=lambda: np.zeros(DUE + 1))

    @classmethod
    def of(cls, parts: Iterable["QueryTotals"]) -> "QueryTotals":
        """Return what several did together."""
        together = cls()
        for part in parts:
            together.add(part)
        return together

    def add(self, other: "QueryTotals") -> None:
        self.responses.merge(other.responses)
        self.slowdowns.merge(other.slowdowns)
        self.tardiness.merge(other.tardiness)
        self.sums += other.sums
