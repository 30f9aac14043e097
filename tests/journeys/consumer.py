"""A separate process that runs a pipeline until its whole source is processed and delivered."""

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from headgate import Headgate
from headgate.config import read_pipeline
from headgate.runtime import load
from headgate.runtime.run import run as running
from headgate.spark.sinks.files import compaction


def main(file: str, offered: str, point: str = "", times: str = "0") -> None:
    """Run the pipeline: print `started` once it runs, return when all is consumed and delivered.

    Args:
        offered: how many tuples each query must consume, as JSON: one number, or one per query.
        point: the point of the engine at which the whole process group kills itself.
        times: the group dies when it reaches the point for the n-th time.
    """
    running.FORGET_EVERY_S = 0.0  # so that even a run of a few seconds drops trains many times
    compaction.FEW, compaction.TIERS = 2, 1
    headgate = loaded(file)
    headgate._reached = killer(point, int(times))
    headgate.start()
    print("started", flush=True)
    print_accounts(headgate)
    while not done(headgate, json.loads(offered)) and not headgate.wait(0.05):
        pass
    headgate.stop()
    print_accounts(headgate)


def loaded(file: str) -> Headgate:
    """Return the Headgate of a pipeline file; callback sinks write files to STATE/delivered."""
    pipeline = read_pipeline(file)
    delivered = [query for query in pipeline.query_models() if query.sink.format == "callback"]
    names = {query.name for query in delivered}
    others = {name: query for name, query in pipeline.queries.items() if name not in names}
    headgate = load(pipeline.model_copy(update={"queries": others}))
    for query in delivered:
        headgate.add_query(query, into_files(headgate.state / "delivered" / query.name))
    return headgate


def into_files(folder: Path) -> Callable[[pa.Table, str], None]:
    """Return a callback that writes each delivery to its own file, including repeated ones."""
    folder.mkdir(parents=True, exist_ok=True)

    def take(table: pa.Table, key: str) -> None:
        name = f"{key.rpartition('/')[2]}@{time.time_ns()}"
        pq.write_table(table, folder / f".{name}")
        (folder / f".{name}").rename(folder / f"{name}.parquet")

    return take


def done(headgate: Headgate, offered: int | dict[str, int]) -> bool:
    for name, (consumed, _) in headgate.totals().items():
        if consumed < (offered if isinstance(offered, int) else offered[name]):
            return False
    return not any((headgate.state / "outbox").rglob("*.parquet"))


def killer(point: str, times: int) -> Callable[[str], None]:
    left = [times]

    def reached(here: str) -> None:
        if here == point:
            left[0] -= 1
            if left[0] == 0:
                os.killpg(os.getpgrp(), signal.SIGKILL)  # the JVM dies with us

    return reached


def print_accounts(headgate: Headgate) -> None:
    """Print the accounts of all queries as one line of JSON."""
    accounts = {name: asdict(account) for name, account in headgate.accounts().items()}
    print(json.dumps(accounts), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
