"""One side of the comparison, alone in its process and its JVM."""

import json
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from pyspark.sql.streaming.query import StreamingQuery

from headgate import Headgate, HeadgateError, Stream, policy_named
from headgate.runtime.live.handle import QueryHandle
from headgate.spark.jvm.errors import cause_of
from headgate.spark.jvm.session import local_session
from headgate.workloads.testbeds.forest import SCHEMA
from input_tuples import READY, put_primer, put_text, source_of, wait_until
from queries import CLASSES, Selection, streams_of
from settings import MASTERS, settings_of

STOP, ENDED, REPORTED = "stop", "ended", "reported"
"""Names in a side's folder: the marker that stops it, its errors, Headgate's own figures."""

REHEARSAL_S = 12.0
"""How long either side may warm up before the first tuple; the default of Headgate."""


def results_of(side: str, folder: Path, query: str) -> Path:
    """Return the folder of a query's results; on both sides it is in the state folder."""
    return folder / "state" / ("results" if side.startswith("headgate") else "sinks") / query


def run_side(side: str, folder: Path, queries: Sequence[Selection]) -> None:
    """Start the queries, report when they are ready, run until stopped, and write the errors."""
    try:
        run = _headgate if side.startswith("headgate") else _native
        errors = run(side, folder, queries)
    except Exception as error:
        errors = [cause_of(error)]
        if not isinstance(error, HeadgateError):
            put_text(folder / ENDED, json.dumps(errors))
            raise
    put_text(folder / ENDED, json.dumps(errors))


def _native(side: str, folder: Path, queries: Sequence[Selection]) -> list[str]:
    state = folder / "state"
    session = local_session(state, MASTERS[side], settings_of(side, folder.parent))
    streams = streams_of(queries)
    for name in streams:
        source = session.readStream.schema(SCHEMA).parquet(str(source_of(folder, name, streams)))
        if len(streams) > 1:
            source = source.withWatermark("ts", "0 seconds")
        source.createOrReplaceTempView(name)
    running: list[StreamingQuery] = []
    for selection in queries:
        # The thread that runs a query inherits the pool from the one that starts it.
        session.sparkContext.setLocalProperty("spark.scheduler.pool", selection.query_class)
        running.append(
            session.sql(selection.native or selection.sql)
            .writeStream.format("parquet")
            .queryName(selection.name)
            .option("path", str(results_of(side, folder, selection.name)))
            .option("checkpointLocation", str(state / "checkpoints" / selection.name))
            .trigger(processingTime="0 seconds")
            .start()
        )

    def passed(number: int) -> bool:
        return all(
            (state / "checkpoints" / query.name / "commits" / str(number)).exists()
            or not query.isActive
            for query in running
        )

    _prime(folder, streams, passed, REHEARSAL_S)
    wait_until((folder / STOP).exists)
    errors = [
        f"query '{query.name}': {cause_of(query.exception())}"
        for query in running
        if not query.isActive
    ]
    session.stop()
    return errors


def _headgate(side: str, folder: Path, queries: Sequence[Selection]) -> list[str]:
    headgate = Headgate(
        state=folder / "state",
        policy=policy_named("cqc", inner="hr", period_steps=10),
        classes=CLASSES,
        workers=2,
        rehearsal_s=REHEARSAL_S,
        record=side == "headgate-recorded",
        master=MASTERS[side],
        spark_config=settings_of(side, folder.parent),
    )
    streams = streams_of(queries)
    for name in streams:
        stream = Stream(
            name=name,
            format="parquet",
            options={"path": str(source_of(folder, name, streams))},
            schema=SCHEMA,
            event_time="ts",
            arrival_time="ts",
            ingest="spark" if side == "headgate-spark" else "auto",
        )
        headgate.add_stream(stream)
    handles = [headgate.add_query(query.query()) for query in queries]
    headgate.start()
    _prime(
        folder, streams, lambda number: all(_has_passed(handle, number) for handle in handles), 0.0
    )
    wait_until((folder / STOP).exists)
    report = headgate.stop()
    if report is not None:
        figures = {
            "scheduler_s": report.scheduler_s,
            "loop_s": report.loop_s,
            "busy_s": report.total.busy_s,
        }
        put_text(folder / REPORTED, json.dumps({**figures, "calls": report.calls}))
    return [] if report is None else [str(error) for error in report.errors]


def _has_passed(handle: QueryHandle, train: int) -> bool:
    progress = handle.lastProgress
    return not handle.isActive or (
        progress is not None and int(progress["sources"][0]["endOffset"]) > train
    )


def _prime(
    folder: Path, streams: Sequence[str], passed: Callable[[int], bool], at_least_s: float
) -> None:
    """Run small files through every query, one by one, before the first tuple that counts.

    The first micro-batch of a query takes seconds, and the warm-up would not clear the queues
    behind 50 of them. There is at least one round; native queries get rounds for as long as
    Headgate rehearses.
    """
    began_s, number = time.perf_counter(), 0
    while number == 0 or time.perf_counter() - began_s < at_least_s:
        for name in streams:
            put_primer(source_of(folder, name, streams), number)
        wait_until(partial(passed, number))
        number += 1
    put_text(folder / READY, "")
