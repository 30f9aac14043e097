"""One run of the benchmark of the closed loop, alone in its process and its JVM.

    python bench/loop_run.py '{"case": "qos", "policy": "rr", "rate_per_s": 500, ...}'

It prints the report as JSON. The generator's arrivals depend on its seed alone, so that every
policy gets the same tuples at the same instants.
"""

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from headgate import Headgate, Query, Stream
from headgate.model.qos_graph import QoSGraph

TUPLES_A_CALL, WORKERS, POLL_S = 250, 1, 0.05
WORK = "aggregate(sequence(1, {steps}), 0D, (a, n) -> a + n * temperature)"
STEPS = (250, 500, 1000, 2000)
"""The costs of the queries: each has twice the work of the one before."""

SHARES = (37, 30, 25, 10)
"""The temperatures above which a query has results: the cheapest query has the fewest."""

REHEARSAL_S = 6.0


@dataclass(frozen=True, kw_only=True)
class Run:
    """What a run is started with.

    Args:
        case: the workload, a name in `CASES`.
        rate_per_s: tuples per second, in bursts of one second in four with the same mean.
    """

    case: str
    policy: str
    rate_per_s: float
    seconds: float
    folder: str
    seed: int = 1

    @property
    def text(self) -> str:
        return json.dumps(asdict(self))


def stream(run: Run, *, quiet_s: float | None = 10.0) -> Stream:
    """Return the readings of the forest in bursts of a second every four, each twice the rate."""
    options = {
        "rate_per_s": str(0.8 * run.rate_per_s), "burst_factor": "2", "burst_every_s": "4",
        "burst_for_s": "1", "seed": str(run.seed),
    }  # fmt: skip
    return Stream(
        name="sensors", format="headgate", options=options, event_time="ts", arrival_time="ts",
        trigger_s=POLL_S, quiet_s=quiet_s,
    )  # fmt: skip


def selections(**options: Any) -> list[Query]:
    """Return queries of four costs and selectivities, two of each, of different urgency."""
    queries = []
    for number in range(8):
        kind = number % 4
        urgent = QoSGraph(((0.0, 1.0), (0.5, 1.0), (2.0, 0.0)))
        patient = QoSGraph(((0.0, 1.0), (8.0, 1.0), (30.0, 0.0)))
        queries.append(Query(
            name=f"q{number}", query_class="N", qos=urgent if number < 4 else patient,
            sql=f"SELECT location, {WORK.format(steps=STEPS[kind])} AS x FROM sensors"
            f" WHERE temperature > {SHARES[kind]}", **options,
        ))  # fmt: skip
    return queries


def windows(run: Run) -> tuple[list[Stream], list[tuple[Query, ...]]]:
    """Return windows of four slides, whose results are due when they end."""
    queries = tuple(
        Query(
            name=f"w{number}", query_class="N",
            sql=f"SELECT location, avg({WORK.format(steps=STEPS[number % 4])}) AS x FROM sensors"
            f" [RANGE {slide} SECONDS SLIDE {slide} SECONDS] GROUP BY location",
        )
        for number, slide in enumerate((1, 2, 3, 4, 1, 2, 3, 4))
    )  # fmt: skip
    return [stream(run)], [queries]


def shedding(run: Run) -> tuple[list[Stream], list[tuple[Query, ...]]]:
    """Return a critical query with a target, and three of rising worth that may lose tuples."""
    work = WORK.format(steps=1000)
    text = f"SELECT location, {work} AS x FROM sensors WHERE temperature > "
    critical = Query(name="critical", query_class="H", sql=text + "1")
    others = [
        Query(
            name=f"worth{weight}", query_class="N", weight=weight, allows_shedding=True,
            sql=text + str(1 + number / 8),
        )
        for number, weight in enumerate((1, 10, 100), start=1)
    ]  # fmt: skip
    return [stream(run)], [(critical, *others)]


def union(run: Run) -> tuple[list[Stream], list[tuple[Query, ...]]]:
    """Return a union of a busy stream and a silent one, which declares how late it may be."""
    silent = Stream(
        name="alarms", format="python", schema="place STRING, ts TIMESTAMP", event_time="ts",
        max_delay_s=0.05, trigger_s=POLL_S,
    )  # fmt: skip
    both = Query(
        name="both", query_class="N",
        sql="SELECT ts, location FROM sensors UNION ALL SELECT ts, place FROM alarms",
    )  # fmt: skip
    return [stream(run), silent], [(both,)]


def selected(run: Run) -> tuple[list[Stream], list[tuple[Query, ...]]]:
    return [stream(run)], [tuple(selections())]


CASES = {
    "selections": selected,
    "windows": windows,
    "shedding": shedding,
    "union": union,
}


def report_of(run: Run) -> dict[str, Any]:
    """Run a case for its time, and return its report with the fractions shed at the end."""
    streams, groups = CASES[run.case](run)
    gate = Headgate(
        state=Path(run.folder), policy=run.policy, workers=WORKERS, most_fused=1,
        train_tuples=TUPLES_A_CALL, rehearsal_s=REHEARSAL_S, share="none", lane="driver",
        classes={"H": {"priority": 6, "target_s": 1.0}, "N": {"priority": 1}}, master="local[2]",
    )  # fmt: skip
    for source in streams:
        rows = (lambda first: iter(())) if source.format == "python" else None
        gate.add_stream(source, rows=rows)
    for query in (query for group in groups for query in group):
        gate.add_query(query)
    gate.start()
    gate.wait(run.seconds)
    rows = gate.status()["queries"]
    fractions = [(row["shedding"] or {"fraction": 0.0})["fraction"] for row in rows]
    report = gate.stop()
    assert report is not None
    return {**report.to_dict(), "fractions": fractions}


if __name__ == "__main__":
    print(json.dumps(report_of(Run(**json.loads(sys.argv[1])))))
