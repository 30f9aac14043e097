"""What compaction costs: files in the manifest after many commits, and p95 of class H beside it.

The commits are those of one query with nothing to compute, so they come as fast as the journal
takes them. The pairs are runs of the same queries over the same stream with and without compaction,
in alternating order; a run has its own process. Run it on a machine that does nothing else.

    python bench/compaction.py
    python bench/compaction.py --commits 500 --pairs 1 --seconds 3 --warm-up 2
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path as File
from statistics import median

import numpy as np
import pyarrow as pa

from bars import Measurement, table
from headgate import Headgate, Query, Sink, Stream, results
from headgate.access import PRIVATE
from headgate.model.events import Event, StepFinished
from headgate.model.network.network import Path
from headgate.model.network.operator import Operator
from headgate.result_files import visible
from headgate.spark.journal.cursors import Cursors
from headgate.spark.journal.journal import Journal
from headgate.spark.output import Output
from headgate.spark.sinks.commit import Commits
from headgate.spark.sinks.files.file_sink import FileSink
from headgate.spark.sinks.files.publisher import Publisher
from headgate.spark.work import Work

MOST_FILES, MOST_RATIO = 100, 1.10
RATE_PER_S, QUERIES = 1500, 24
"""A third of the queries are in class H. Every one has results in every call."""


def of_commits(commits: int, folder: File) -> Iterator[Measurement]:
    """Yield the files in the manifest after so many commits, and the time of a commit."""
    journal, sink = Journal(folder / "state"), FileSink(Sink(path=str(folder / "out")))
    query = Query(name="q", sql="x", query_class="H", sink=Sink(path=str(folder / "out")))
    path = Path(query=query, stream="s", operators=(Operator(kind="project", expressions=("a",)),))
    Cursors(journal).remember("q", "x", "s")
    sink.open_to(PRIVATE)
    sink.gather(Sink(path=str(folder / "out"), compact=True))
    commit = Commits(journal, {"q": sink}, lambda point: None)
    publisher = Publisher(commit.intents, commit.renames, {"q": sink}, lambda point: None)
    publisher.begin()
    rows = pa.table({"number": np.arange(20), "word": [f"word {row}" for row in range(20)]})
    output = Output(rows, np.zeros(20))
    seconds, cpu_seconds = [], []
    for train in range(commits):
        began_s, cpu_began_s = time.perf_counter(), time.thread_time()
        failures = commit(Work((path,), train, train + 1, 20), [(path, output)])
        seconds.append(time.perf_counter() - began_s)
        cpu_seconds.append(time.thread_time() - cpu_began_s)
        assert not failures
    listed = len(results(folder / "out").files)
    publisher.close(60.0)
    rows_left = results(folder / "out").count_rows()
    assert rows_left == 20 * commits, f"{rows_left} rows of {20 * commits}"
    journal.close()
    tenth = max(1, commits // 10)
    yield Measurement(
        what=f"files in the manifest after {commits:,} commits", measured=listed, unit="files",
        bar=MOST_FILES, at_most=True,
        figures={"files_in_the_folder": sum(1 for _ in visible(folder / "out"))},
    )  # fmt: skip
    yield Measurement(
        what="CPU time of a commit among the last tenth, over one among the first",
        measured=median(cpu_seconds[-tenth:]) / median(cpu_seconds[:tenth]), unit="times",
        figures={"commit_s": median(seconds), "cpu_s": median(cpu_seconds)},
    )  # fmt: skip


def of_pairs(pairs: int, seconds: float, warm_up_s: float, folder: File) -> Iterator[Measurement]:
    """Yield the median ratio of p95 of class H with compaction to p95 without."""
    p95_s: dict[bool, list[float]] = {False: [], True: []}
    files: list[int] = []
    for pair in range(pairs):
        for compacts in (False, True) if pair % 2 == 0 else (True, False):
            side = "with" if compacts else "without"
            print(f"pair {pair + 1} of {pairs}, {side} compaction", file=sys.stderr, flush=True)
            state = folder / f"{pair}-{side}"
            command = [sys.executable, __file__, "--run", str(state), "--seconds", str(seconds),
                       "--warm-up", str(warm_up_s), *["--compact"] * compacts]  # fmt: skip
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            figures = json.loads(done.stdout.splitlines()[-1])
            p95_s[compacts].append(figures["p95_s"])
            files += [figures["files"]] * compacts
    ratios = [new / old for new, old in zip(p95_s[True], p95_s[False], strict=True)]
    yield Measurement(
        what=f"p95 of class H with compaction over without, median of {pairs} pairs",
        measured=median(ratios), unit="times", bar=MOST_RATIO, at_most=True,
        figures={"ratios": ratios, "with_s": p95_s[True], "without_s": p95_s[False],
                 "most_files_of_a_query": max(files)},
    )  # fmt: skip


def run(state: File, compacts: bool, seconds: float, warm_up_s: float) -> dict[str, float]:
    """Run queries, and return p95 of class H and the most files that a query has."""
    gate = Headgate(state=state, classes={"H": 6, "N": 1}, master="local[2]", rehearsal_s=warm_up_s)
    options = {"rate_per_s": str(RATE_PER_S), "seed": "1"}
    gate.add_stream(
        Stream(name="sensors", format="headgate", options=options, arrival_time="ts", trigger_s=0.1)
    )
    for number in range(QUERIES):
        sql = f"SELECT location, temperature, ts FROM sensors WHERE temperature > {number}"
        query_class = "N" if number % 3 else "H"
        sink = Sink(compact=compacts)
        gate.add_query(Query(name=f"q{number}", sql=sql, query_class=query_class, sink=sink))
    measured_from_s = float("inf")
    important: set[int] = set()
    responses_s: list[np.ndarray] = []

    def hear(event: Event) -> None:
        if isinstance(event, StepFinished) and event.at_s >= measured_from_s:
            for unit, unit_responses_s in zip(event.call.units, event.responses_s, strict=True):
                if unit in important:
                    responses_s.append(unit_responses_s)

    gate.start(listeners=[hear])
    important |= {row["id"] for row in gate.status()["queries"] if row["class"] == "H"}
    gate.wait(warm_up_s)
    measured_from_s = time.time()
    gate.wait(seconds)
    report = gate.stop()
    assert report is not None
    assert not report.errors, report.errors
    files = max(len(results(state, f"q{number}").files) for number in range(QUERIES))
    return {"p95_s": float(np.quantile(np.concatenate(responses_s), 0.95)), "files": files}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--commits", type=int, default=36_000, help="commits of one query (36000)")
    parser.add_argument("--pairs", type=int, default=5, help="runs of each side (5)")
    parser.add_argument("--seconds", type=float, default=60.0, help="measured in each run (60)")
    parser.add_argument("--warm-up", type=float, default=15.0, help="seconds before that (15)")
    parser.add_argument("--run", type=File, help=argparse.SUPPRESS)
    parser.add_argument("--compact", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.run is not None:
        figures = run(arguments.run, arguments.compact, arguments.seconds, arguments.warm_up)
        print(json.dumps(figures))
        return 0
    with tempfile.TemporaryDirectory(prefix="headgate-compaction-") as name:
        folder = File(name)
        rows = list(of_commits(arguments.commits, folder))
        rows += of_pairs(arguments.pairs, arguments.seconds, arguments.warm_up, folder)
    print(table(rows))
    for row in rows:
        print(json.dumps(row.to_dict()), file=sys.stderr)
    return int(any(row.verdict == "miss" for row in rows))


if __name__ == "__main__":
    sys.exit(main())
