"""A query that could not be taken apart: it runs as Spark reads it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headgate.spark.jvm.query.plans import Plan
from headgate.spark.output import Output


@dataclass(frozen=True)
class WholeQuery:
    """A query of one stream that has a plan of its own.

    Which input row an output row comes from is not known; each counts as arrived at the mean of its
    trains.
    """

    stream: str
    plan: Plan
    members: Mapping[str, int]
    text: str
    shape: str = "single"

    @property
    def driver(self) -> Plan | None:
        """What the driver lane computes."""
        return self.plan

    @property
    def job(self) -> Plan:
        """What a job computes."""
        return self.plan

    def split(self, arrived_at_s: float, rows: pa.Table, names: Iterable[str]) -> list[Output]:
        """Return the output, for each of its names.

        Args:
            arrived_at_s: the mean arrival of the trains.
        """
        output = Output(rows, np.full(rows.num_rows, arrived_at_s))
        return [output for _ in names]
