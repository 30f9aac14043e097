"""The built-in generator: readings of a sensor network in a forest."""

from collections.abc import Mapping

import pyarrow as pa

from headgate.errors import OptionRefused
from headgate.extensions import MOST_TUPLES, Options, Polled, Source, SourceContext
from headgate.spark.clock import Clock
from headgate.workloads.testbeds.forest import SCHEMA, arrivals_of, sensor_readings


def columns_of(options: Options) -> str:
    """Return the columns of every generated stream, as Spark DDL."""
    return SCHEMA


def refuse_values(options: Options) -> None:
    """Refuse values of options with which nothing can be generated."""
    options.whole("seed", 0)
    options.whole("tuples", 1)
    for key in ("rate_per_s", "burst_factor", "burst_every_s"):
        options.number(key, 1.0, above=0.0)
    every_s, for_s = options.number("burst_every_s", 20.0), options.number("burst_for_s", 0.0)
    if not 0 <= for_s < every_s:
        raise OptionRefused(
            option="burst_for_s", value=options["burst_for_s"],
            expected="from 0 to below burst_every_s",
        )  # fmt: skip


class GeneratorSource(Source):
    """Readings of a forest, see `workloads.forest`; a restart goes on as if no time had passed."""

    def __init__(self, context: SourceContext) -> None:
        options = context.options
        self._seed = options.whole("seed", 0)
        self._last = options.whole("tuples", 2**60)
        self._arrivals = arrivals_of(dict(options))
        self._next, self._start_s = 0, -1.0
        self._now_s = Clock().now_s

    def resume(self, position: Mapping[str, str]) -> None:
        self._next = int(position.get("tuple", "0"))

    def poll(self) -> Polled | None:
        now_s = self._now_s()
        if self._start_s < 0:
            passed_s = float(self._arrivals.times_s(self._next, self._next + 1)[0])
            self._start_s = now_s - passed_s
        end = min(self._arrivals.count_by(now_s - self._start_s), self._last)
        end = min(end, self._next + MOST_TUPLES)
        if end <= self._next:
            return None
        times_s = self._arrivals.times_s(self._next, end) + self._start_s
        batch = sensor_readings(self._seed, self._next, times_s)
        return Polled(pa.Table.from_batches([batch]), {"tuple": str(end)})

    def taken(self, polled: Polled) -> None:
        self._next = int(polled.position["tuple"])
