"""A Headgate over the streams of a test, and what a test waits for and checks."""

import re
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from crash import CrashingHeadgate
from pyspark.sql import SparkSession

from headgate import Headgate, Query, Stream
from headgate.metrics.report import Report


def new_gate(
    spark: SparkSession,
    folder: Path,
    streams: Iterable[Stream],
    queries: Iterable[Query] = (),
    **settings: Any,
) -> Headgate:
    """Return a Headgate with its state in `folder/state` that starts without a rehearsal.

    With `reached`, it calls a function at every point where a crash must lose nothing.
    """
    gate = CrashingHeadgate(
        spark, **{"state": folder / "state", "rehearsal_s": 0, **settings}
    )  # fmt: skip
    for stream in streams:
        gate.add_stream(stream)
    for query in queries:
        gate.add_query(query)
    return gate


def of_two_classes(texts: Mapping[str, str]) -> list[Query]:
    """Return a query for each text; every second one is of class N, the others of class H."""
    return [
        Query(name=name, sql=sql, query_class="HN"[number % 2])
        for number, (name, sql) in enumerate(texts.items())
    ]


def consume(gate: Headgate, offered: int, but: tuple[str, ...] = ()) -> None:
    """Wait until every query, except those in `but`, has consumed the tuples offered."""
    consume_each(gate, {name: offered for name in gate.totals() if name not in but})


def consume_streams(gate: Headgate, texts: Mapping[str, str], offered: Mapping[str, int]) -> None:
    """Wait until every query has consumed the tuples of the streams that its text reads.

    Args:
        offered: how many tuples each stream has, by its name.
    """
    counts = {
        name: sum(count for stream, count in offered.items() if re.search(rf"\b{stream}\b", sql))
        for name, sql in texts.items()
    }
    consume_each(gate, counts)


def consume_each(gate: Headgate, offered: Mapping[str, int]) -> None:
    """Wait until every named query has consumed as many tuples as it was offered."""
    ends_at_s = time.monotonic() + 90.0
    while True:
        totals = gate.totals()
        if all(totals[name][0] >= count for name, count in offered.items()):
            return
        assert time.monotonic() < ends_at_s, f"{totals} of {offered}, {gate.report().errors}"
        gate.wait(0.05)


def until(done: Callable[[], bool], gate: Headgate, deadline_s: float = 90.0) -> None:
    """Wait until a condition is true; fail if that takes longer than `deadline_s`."""
    ends_at_s = time.monotonic() + deadline_s
    while not done():
        assert time.monotonic() < ends_at_s, gate.report().errors
        gate.wait(0.05)


def stop_without_errors(gate: Headgate) -> Report:
    """Stop a gate; check that no query failed and that every account adds up."""
    report = gate.stop()
    assert report is not None
    assert not report.errors
    balanced(gate)
    return report


def balanced(gate: Headgate) -> None:
    """Check that the account of every query adds up to the tuples that arrived."""
    for name, account in gate.accounts().items():
        parts = account.delivered + account.filtered + account.queued + account.shed
        parts += account.missed + account.late
        assert account.arrived == parts + account.dead_lettered, (name, account)
