"""A query that cannot be split into conditions and outputs: it runs as one plan."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headgate.spark.jvm.query.plans import Plan
from headgate.spark.output import Output


@dataclass(frozen=True)
class WholeQuery:
    """A query of one stream that has its own plan.

    It is unknown which input row an output row comes from, so every output row gets the mean
    arrival time of the trains.
    """

    stream: str
    plan: Plan
    members: Mapping[str, int]
    text: str
    shape: str = "single"

    @property
    def driver(self) -> Plan | None:
        """The plan for the driver lane."""
        return self.plan

    @property
    def job(self) -> Plan:
        """The plan for a job."""
        return self.plan

    def split(self, arrived_at_s: float, rows: pa.Table, names: Iterable[str]) -> list[Output]:
        """Return the same output for each name in `names`.

        Args:
            arrived_at_s: the mean arrival time of the trains.
        """
        output = Output(rows, np.full(rows.num_rows, arrived_at_s))
        return [output for _ in names]
