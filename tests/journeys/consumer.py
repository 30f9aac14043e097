"""A process of its own that runs a pipeline until all of its source is processed and delivered."""

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
from headgate.runtime.live import run as running


def main(file: str, offered: str, point: str = "", times: str = "0") -> None:
    """Says `started` on stdout once tuples flow; ends when all is consumed and delivered.

    Args:
        offered: how many tuples each query is to consume, as JSON: a number, or one by query.
        point: where the whole process group kills itself, when it comes there for the n-th time.
    """
    running.FORGET_EVERY_S = 0.0  # a run of seconds, too, drops trains again and again
    headgate = loaded(file)
    headgate._reached = killer(point, int(times))
    headgate.start()
    print("started", flush=True)
    tell(headgate)
    while not done(headgate, json.loads(offered)) and not headgate.wait(0.05):
        pass
    headgate.stop()
    tell(headgate)


def loaded(file: str) -> Headgate:
    """Gives what a pipeline file says; a callback takes results into files of STATE/delivered."""
    pipeline = read_pipeline(file)
    delivered = [each for each in pipeline.query_models() if each.sink.format == "callback"]
    names = {each.name for each in delivered}
    others = {name: each for name, each in pipeline.queries.items() if name not in names}
    headgate = load(pipeline.model_copy(update={"queries": others}))
    for query in delivered:
        headgate.add_query(query, into_files(headgate.state / "delivered" / query.name))
    return headgate


def into_files(folder: Path) -> Callable[[pa.Table, str], None]:
    """Gives a receiver that keeps each delivery, also of what was delivered before."""
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


def tell(headgate: Headgate) -> None:
    """Prints every query's account as a line of JSON."""
    print(
        json.dumps({name: asdict(each) for name, each in headgate.accounts().items()}), flush=True
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
