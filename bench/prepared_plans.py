"""Measure what distinct queries cost before their first tuple: to add, to start, to hold.

Print the seconds of adding a query and of starting a gate, and the heap of the JVM for each plan
that is prepared for the driver lane. An earlier checkout, without such plans, can run it too:

    python bench/prepared_plans.py --queries 500
    PYTHONPATH=../before python bench/prepared_plans.py
"""

import tempfile
import time
from argparse import ArgumentParser
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from headgate import Headgate, Stream
from queries import CLASSES, STREAM, distinct

KILOBYTE = 1000


def starts(count: int, folder: Path) -> None:
    """Print the seconds that a gate needs until it runs."""
    gate = Headgate(state=folder, classes=CLASSES, master="local[2]")
    options = {"rate_per_s": "150"}
    gate.add_stream(Stream(name=STREAM, format="headgate", options=options, arrival_time="ts"))
    began_s = time.perf_counter()
    for selection in distinct(count):
        gate.add_query(selection.query())
    added_s = time.perf_counter()
    gate.start()
    started_s = time.perf_counter()
    gate.stop()
    print(
        f"add {(added_s - began_s) / count * 1000:.1f} ms a query, {added_s - began_s:.1f} s in all"
    )
    print(f"start {started_s - added_s:.1f} s")


def keeps(count: int, folder: Path) -> None:
    """Print the milliseconds and the heap of a prepared plan."""
    from headgate.spark.jvm.lane.compatibility import driver_lane  # noqa: PLC0415
    from headgate.spark.jvm.query.plans import Plans  # noqa: PLC0415
    from headgate.spark.jvm.session import local_session, own_session  # noqa: PLC0415
    from headgate.workloads.testbeds.forest import SCHEMA, sensor_readings  # noqa: PLC0415

    spark = local_session(folder, "local[2]", {})
    session = own_session(spark)
    plans, lane = Plans(session), driver_lane(session, folder)
    schema = spark.createDataFrame([], SCHEMA).schema
    plans.relation(STREAM, schema).createOrReplaceTempView(STREAM)
    texts = [selection.sql for selection in distinct(count + 1)]
    first = lane.prepare(plans.of(session.sql(texts.pop())))
    empty = _used_bytes(spark)
    analyzed = [plans.of(session.sql(text)) for text in texts]
    logical = _used_bytes(spark)
    began_s = time.perf_counter()
    prepared = [lane.prepare(plan) for plan in analyzed]
    took_s = time.perf_counter() - began_s
    rows = pa.Table.from_batches([sensor_readings(1, 0, np.arange(10.0))])
    for runner in prepared:
        runner({STREAM: rows})
    full = _used_bytes(spark)
    print(f"prepare {took_s / count * 1000:.1f} ms a plan")
    analyzed_kb, heap_kb, other_kb = (
        (after - before) / count / KILOBYTE
        for after, before in ((logical[0], empty[0]), (full[0], logical[0]), (full[1], logical[1]))
    )
    print(f"heap: {heap_kb:.0f} kB a prepared plan, {analyzed_kb:.0f} kB its analyzed plan")
    print(f"outside the heap: {other_kb:.0f} kB for its classes and code")
    print(f"heap of {len(prepared)}: {full[0] / KILOBYTE / KILOBYTE:.0f} MB")
    del first
    spark.stop()


def _used_bytes(spark: Any) -> tuple[int, int]:
    """Return the bytes in use, in the heap and outside of it, after a collection of garbage."""
    for _ in range(3):
        spark._jvm.java.lang.System.gc()
        time.sleep(0.3)  # Spark's own cleaner frees what the first collection has left
    memory = spark._jvm.java.lang.management.ManagementFactory.getMemoryMXBean()
    heap, other = memory.getHeapMemoryUsage(), memory.getNonHeapMemoryUsage()
    return int(heap.getUsed()), int(other.getUsed())


if __name__ == "__main__":
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("--only-heap", action="store_true", help="start no gate")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        if not arguments.only_heap:
            starts(arguments.queries, Path(name) / "gate")
        if find_spec("headgate.spark.jvm") is not None:
            keeps(arguments.queries, Path(name) / "plans")
