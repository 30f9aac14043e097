"""Tuples of a sensor network in a forest: location, temperature, humidity (CQC §5.1, Table 1)."""

import numpy as np
import pyarrow as pa

from headgate.errors import ConfigRefused
from headgate.model.arrays import Floats
from headgate.workloads.arrivals import Bursts
from headgate.workloads.random_hash import scrambled

SCHEMA = "location STRING, temperature INT, humidity INT, ts TIMESTAMP"
LOCATIONS = np.array([f"forest-{number:05d}" for number in range(20)])  # 12 characters, 20 of them


def sensor_readings(seed: int, first: int, times_s: Floats) -> pa.RecordBatch:
    """Return readings first, first + 1, ...; the same numbers always have the same readings.

    Args:
        times_s: when each reading is taken, in seconds since 1970.
    """
    numbers = np.arange(first, first + len(times_s), dtype=np.uint64)
    bits = scrambled(seed, numbers)
    microseconds = (times_s * 1e6).astype(np.int64)
    return pa.RecordBatch.from_pydict(
        {
            "location": pa.array(LOCATIONS[(bits % np.uint64(20)).astype(np.int64)], pa.string()),
            "temperature": ((bits >> np.uint64(8)) % np.uint64(41)).astype(np.int32),
            "humidity": ((bits >> np.uint64(24)) % np.uint64(101)).astype(np.int32),
            "ts": pa.array(microseconds, pa.timestamp("us", tz="UTC")),
        }
    )


def arrivals_of(options: dict[str, str]) -> Bursts:
    """Parse the arrival options of a generator stream."""
    values = {}
    for key in ("rate_per_s", "burst_factor", "burst_every_s", "burst_for_s"):
        try:
            if key in options or key == "rate_per_s":
                values[key] = float(options[key])
        except (KeyError, ValueError) as error:
            raise ConfigRefused(
                path="options of format 'headgate'",
                key=key,
                value=options.get(key),
                expected="a number, as in  rate_per_s: 1500",
            ) from error
    return Bursts(**values)
