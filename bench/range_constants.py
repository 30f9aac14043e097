"""Measure queries that differ only in constants: ranges, BETWEEN, and equality beside them.

Print the milliseconds of a call (compute and split) by number of queries, rows of a call and lane,
and the time that adding and preparing take. With `--gate`, run the queries of one form at a steady
rate instead, and print what was carried and whether the answers are right.

    python bench/range_constants.py
    python bench/range_constants.py --gate --queries 2000 --rate 1000
"""

import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

REGIONS = ["a", "b", "c", "d"]
FORMS = {
    "range": "x > {low} AND x < {high} AND region = 'a'",
    "between": "x BETWEEN {low} AND {high} AND y > {least}",
    "equality": "x = {low} AND y > {least}",
}
COUNTS, ROWS, DDL = (24, 256, 2000), (150, 1500, 20_000), "x INT, y INT, region STRING"
SPREAD = 10_000
"""How many values x has. The ranges are 4 wide on average, so a tuple is in few of them."""


def texts_of(form: str, count: int, seed: int = 1) -> list[str]:
    """Return SQL texts of one form, no two of them equal."""
    random = np.random.default_rng(seed)
    lows = random.choice(SPREAD, count, replace=False)
    return [
        "SELECT x, y, region FROM s WHERE "
        + FORMS[form].format(low=low, high=low + 1 + wide, least=least)
        for low, wide, least in zip(
            lows, random.integers(1, 8, count), random.integers(0, 50, count), strict=True
        )
    ]


def rows_of(count: int, seed: int = 2) -> dict[str, Any]:
    """Return the columns of random tuples."""
    random = np.random.default_rng(seed)
    return {
        "x": pa.array(random.integers(0, SPREAD, count), pa.int32()),
        "y": pa.array(random.integers(0, 100, count), pa.int32()),
        "region": pa.array(random.choice(REGIONS, count)),
    }


def calls(counts: Sequence[int], sizes: Sequence[int], repeats: int) -> None:
    """Print the milliseconds of a call, all groups together."""
    from headgate.model.query import Query  # noqa: PLC0415  # `--gate` needs none of these
    from headgate.model.stream import ARRIVED_AT, Stream  # noqa: PLC0415
    from headgate.runtime.members.query_paths import segments_of  # noqa: PLC0415
    from headgate.spark.jvm.lane.plan_runner import DriverLane  # noqa: PLC0415
    from headgate.spark.jvm.query.analysis import Analyst  # noqa: PLC0415
    from headgate.spark.jvm.session import local_session, own_session  # noqa: PLC0415
    from headgate.spark.log.trains import Trains  # noqa: PLC0415
    from headgate.spark.sharing.constants_group import constants_group  # noqa: PLC0415
    from headgate.spark.sharing.group_plan import Prepared  # noqa: PLC0415
    from headgate.spark.sharing.sharing_plan import Member, parts_of  # noqa: PLC0415

    folder = Path(tempfile.mkdtemp())
    spark = local_session(folder, "local[2]", {})
    schema = spark.createDataFrame([], f"{DDL}, {ARRIVED_AT} DOUBLE").schema
    trains = []
    for size in sizes:
        table = pa.table({**rows_of(size), ARRIVED_AT: pa.array(np.zeros(size))})
        file = folder / f"{size}.parquet"
        pq.write_table(table, file)
        trains.append(Trains(schema, [str(file)], size, lambda table=table: table))  # type: ignore[misc]
    print(
        f"{'form':9} {'queries':>7} {'groups':>6} {'add ms':>7} {'plan s':>7} {'lane':>6}", end=""
    )
    print("".join(f"{size:>10}" for size in sizes), " rows: ms a call")
    for form in FORMS:
        for count in counts:
            analyst = Analyst(own_session(spark))
            analyst.add_stream("s", spark.createDataFrame([], DDL).schema)
            began_s = time.perf_counter()
            paths: list[Any] = []
            for number, sql in enumerate(texts_of(form, count)):
                query = Query(name=f"q{number}", sql=sql, query_class="H")
                streams = [Stream(name="s", format="rate")]
                paths += segments_of(query, analyst, {"s": ["x", "y", "region"]}, streams)[1]
            add_ms = (time.perf_counter() - began_s) / count * 1000
            driver = DriverLane(own_session(spark))
            began_s = time.perf_counter()
            members = [Member(path, path.plan.parts) for path in paths]
            groups = [
                Prepared(
                    part,
                    constants_group(
                        [m.path for m in part.members], [m.parts for m in part.members]
                    ),
                    driver,
                )
                for part in parts_of(members, lambda path: False)
                if part.table
            ]
            assert sum(len(group.group.members) for group in groups) == count
            for group in groups:
                group.prepare()
            plan_s = time.perf_counter() - began_s
            for lane in ("driver", "job"):
                print(
                    f"{form:9} {count:7} {len(groups):6} {add_ms:7.1f} {plan_s:7.2f} {lane:>6}",
                    end="",
                )
                for train in trains:
                    took_ms = []
                    for _ in range(repeats if lane == "driver" else max(2, repeats // 4)):
                        began_s = time.perf_counter()
                        for group in groups:
                            group.run(spark, lane, train, list(group.group.members), "")
                        took_ms.append((time.perf_counter() - began_s) * 1000)
                    print(f"{median(took_ms[len(took_ms) // 2 :]):10.1f}", end="", flush=True)
                print()
    spark.stop()


def steady(form: str, count: int, rate: int, seconds: float) -> None:
    """Print how a gate carries queries at a rate, using only the public API."""
    from headgate import Headgate, Query, Stream  # noqa: PLC0415

    folder = Path(tempfile.mkdtemp())
    gate = Headgate(state=folder, classes={"H": 1}, master="local[2]", rehearsal_s=3)
    table = pa.table(rows_of(int(rate * seconds)))

    def batches() -> Iterator[pa.Table]:
        """Yield the tuples as they are due."""
        began_s, sent = time.perf_counter(), 0
        while sent < table.num_rows:
            due = min(table.num_rows, int((time.perf_counter() - began_s) * rate))
            if due > sent:
                yield table.slice(sent, due - sent)
            sent = due
            time.sleep(0.02)

    source = folder / "source"
    source.mkdir()
    gate.add_stream(
        Stream(
            name="s", format="parquet", schema=DDL, trigger_s=0, quiet_s=None,
            options={"path": str(source)},
        )
    )  # fmt: skip
    texts = texts_of(form, count)
    began_s = time.perf_counter()
    for number, sql in enumerate(texts):
        gate.add_query(Query(name=f"q{number}", sql=sql, query_class="H"))
    add_s = time.perf_counter() - began_s
    began_s = time.perf_counter()
    gate.start()
    start_s = time.perf_counter() - began_s
    began_s = time.perf_counter()
    for number, batch in enumerate(batches()):
        pq.write_table(batch, source / f".{number:06d}")
        (source / f".{number:06d}").rename(source / f"{number:06d}.parquet")
    offered_s = time.perf_counter() - began_s
    behind = table.num_rows - min(tuples for tuples, _ in gate.totals().values())
    while min(tuples for tuples, _ in gate.totals().values()) < table.num_rows:
        gate.wait(0.05)
        if time.perf_counter() - began_s > 10 * seconds:
            break
    took_s = time.perf_counter() - began_s
    shape = gate.explanation("q0").shape
    totals = gate.totals()
    report = gate.stop()
    assert report is not None
    print(f"{count} queries of form '{form}', {rate} tuples/s for {offered_s:.1f} s: {shape}")
    print(f"add {add_s / count * 1000:.1f} ms a query, start {start_s:.1f} s")
    print(f"behind at the end: {behind} tuples; all done {took_s - offered_s:.1f} s later")
    for line in report.classes:
        print(f"mean response {line.response_s.mean:.3f} s")
    with duckdb.connect() as db:
        db.register("s", table)
        wrong = sum(
            totals[f"q{number}"][1] != len(db.sql(sql).fetchall())
            for number, sql in enumerate(texts)
        )
    print(f"queries with a wrong number of results: {wrong}; errors: {len(report.errors)}")


if __name__ == "__main__":
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--gate", action="store_true")
    parser.add_argument("--form", default="range", choices=FORMS)
    parser.add_argument("--queries", type=int, default=2000)
    parser.add_argument("--rate", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--repeats", type=int, default=12)
    arguments = parser.parse_args()
    if arguments.gate:
        steady(arguments.form, arguments.queries, arguments.rate, arguments.seconds)
    else:
        calls(COUNTS, ROWS, arguments.repeats)
