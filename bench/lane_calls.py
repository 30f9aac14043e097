"""Time calls on the driver lane, Arrow table to Arrow table, and print the medians as JSON.

The script also runs in checkouts from before the driver lane used Spark's own physical plan, so
that `checkouts.py` can compare them with this one.

    python bench/lane_calls.py
"""

import json
import tempfile
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.types import StructType

SIZES = (150, 1_500, 20_000)
WARM_UP, CALLS = 150, 60
SCHEMA = "k INT, g STRING, x INT, y DOUBLE, ts TIMESTAMP"

TEXTS = {
    "filter and project": "SELECT g, x + 1 AS z, y FROM a WHERE x > 50 AND g <> 'g3'",
    "group by, 5 aggregates": (
        "SELECT g, count(*) AS n, sum(x) AS s, avg(y) AS m, min(x) AS low, max(x) AS high FROM a"
        " GROUP BY g"
    ),
    "window, 10 s": (
        "SELECT window.end AS at, g, count(*) AS n FROM a GROUP BY window(ts, '10 seconds'), g"
    ),
    "session, 2 s": (
        "SELECT g, count(*) AS n, session_window.end AS at FROM a"
        " GROUP BY session_window(ts, '2 seconds'), g"
    ),
    "inner join": "SELECT a.g, a.x, b.y FROM a JOIN b ON a.k = b.k",
    "left join": "SELECT a.g, a.x, b.y FROM a LEFT JOIN b ON a.k = b.k",
}

Call = Callable[[Mapping[str, pa.Table]], object]


def rows_of(count: int, seed: int) -> pa.Table:
    random = np.random.default_rng(seed)
    times = np.sort(random.integers(0, 60_000_000, count)) + 1_700_000_000_000_000
    return pa.table(
        {
            "k": pa.array(random.permutation(count).astype(np.int32)),
            "g": pa.array([f"g{n}" for n in random.integers(0, 20, count)]),
            "x": pa.array(random.integers(0, 100, count).astype(np.int32)),
            "y": pa.array(random.random(count)),
            "ts": pa.array(times).cast(pa.timestamp("us", "UTC")),
        }
    )


def lane(folder: Path) -> Callable[[str], Call]:
    """Return a function that prepares a SQL text over tables a and b for the driver lane."""
    if find_spec("headgate.spark.jvm") is None:  # before the driver lane used Spark's own plan
        local_plan: Any = import_module("headgate.spark.local_plan")
        session = import_module("headgate.spark.session").local_session(folder, "local[2]", {})
        schemas = dict.fromkeys("ab", StructType.fromDDL(SCHEMA))
        return lambda text: local_plan.LocalPlan(session, text, schemas)
    sessions: Any = import_module("headgate.spark.jvm.session")
    session = sessions.own_session(sessions.local_session(folder, "local[2]", {}))
    driver: Any = import_module("headgate.spark.jvm.lane.compatibility").driver_lane(session)
    plans: Any = import_module("headgate.spark.jvm.query.plans").Plans(session)
    for name in "ab":
        plans.relation(name, StructType.fromDDL(SCHEMA)).createOrReplaceTempView(name)
    return lambda text: driver.prepare(plans.of(session.sql(text)))


def main() -> None:
    medians_ms = {}
    with tempfile.TemporaryDirectory() as folder:
        prepare = lane(Path(folder))
        for name, text in TEXTS.items():
            call = prepare(text)
            names = ["a", "b"] if " b " in text else ["a"]
            for size in SIZES:
                tables = {table: rows_of(size, seed) for seed, table in enumerate(names)}
                times_s = []
                for _ in range(WARM_UP + CALLS):
                    began_s = time.perf_counter()
                    call(tables)
                    times_s.append(time.perf_counter() - began_s)
                medians_ms[f"{name}, {size} rows"] = 1000 * median(times_s[-CALLS:])
    print(json.dumps(medians_ms))


if __name__ == "__main__":
    main()
