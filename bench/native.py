"""Compare N native Structured Streaming queries with the same queries in Headgate, on one machine.

The sides run one after the other. Every side has its own process and JVM, and is offered the same
tuples at the same rate. A response lasts from the instant for which a tuple is scheduled, so that
no waiting is hidden, to the instant at which its result is visible.

    python bench/native.py --queries 24
    python bench/native.py --queries 50 --json > 50.json
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from types import FrameType

from commit_times import commits_of, measured
from cqc_queries import cqc
from input_tuples import BEGAN, OFFERED, READY, Offered, expected, generate, source_of
from machine import cpu_clock, facts
from queries import CLASSES, Selection, streams_of
from queries import MIXES as SELECTIONS
from settings import MASTERS, prepare, settings_of
from sides import ENDED, STOP, results_of, run_side
from verdict import SideResult, lines_of, ratios, table

MIXES: dict[str, Callable[[int], list[Selection]]] = {
    **SELECTIONS,
    **{f"cqc-{name}": partial(lambda name, number: cqc(name)[:number], name) for name in "ABC"},
}

READY_WITHIN_S = 600.0

TAIL_S = 3.0
"""How long tuples go on after the measured seconds, so that the last windows close."""
STOP_WITHIN_S = 60.0


@dataclass(frozen=True, kw_only=True)
class Request:
    """What to compare, and how."""

    queries: int
    seconds: float
    warm_up_s: float
    rate_per_s: float
    tick_s: float
    grace_s: float
    sides: tuple[str, ...]
    mix: str = "demo"


class SideFailed(Exception):
    """A side could not be run to its end; the text says why."""


def main() -> int:
    arguments = _arguments()
    if arguments.part:
        return _part(arguments)
    request = Request(
        queries=arguments.queries,
        seconds=arguments.seconds,
        warm_up_s=arguments.warm_up,
        rate_per_s=arguments.rate,
        tick_s=arguments.tick,
        grace_s=arguments.grace,
        sides=tuple(arguments.sides),
        mix=arguments.mix,
    )
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupt)
    try:
        with working_folder(arguments.keep) as folder:
            prepare(folder)
            results = [compared(side, request, folder) for side in request.sides]
            settings = {side: settings_of(side, folder) for side in request.sides}
    except KeyboardInterrupt:
        talk("interrupted")
        return 130
    except subprocess.CalledProcessError as error:
        talk(f"cannot compile the file system: {error.stderr.decode().strip()}")
        return 1
    if arguments.json:
        answer = {
            "machine": facts(),
            "request": asdict(request),
            "classes": CLASSES,
            "settings": {
                side: {"spark.master": MASTERS[side], **settings[side]} for side in request.sides
            },
            "sides": {result.side: result.to_dict() for result in results},
            "native_over_headgate": ratios(results),
        }
        print(json.dumps(answer, indent=1))
    else:
        print(
            f"{request.queries} queries, {request.rate_per_s:g} tuples/s, {request.seconds:g} s"
            f" measured after {request.warm_up_s:g} s; seconds from a tuple's scheduled time"
            " to its visible result\n"
        )
        print(table(results))
    return 1 if any(result.errors for result in results) else 0


def compared(side: str, request: Request, folder: Path) -> SideResult:
    """Run one side. What goes wrong with it is part of the result."""
    try:
        result = _run(side, request, folder / side)
    except (SideFailed, OSError, ValueError) as error:
        result = SideResult(side, errors=[str(error)])
    for problem in result.problems:
        talk(f"{side}: FAILED: {problem}")
    return result


def _run(side: str, request: Request, folder: Path) -> SideResult:
    queries = MIXES[request.mix](request.queries)
    streams = streams_of(queries)
    for name in streams:
        source_of(folder, name, streams).mkdir(parents=True)
    began_s = time.perf_counter()
    with _started(folder, request, side) as runs, _started(folder, request, "generator") as offers:
        talk(f"{side}: starting {len(queries)} queries")
        _await((folder / READY).exists, READY_WITHIN_S, runs)
        talk(f"{side}: ready after {time.perf_counter() - began_s:.0f} s; tuples begin")
        _await((folder / BEGAN).exists, 30.0, runs, offers)
        began_at_s = float(json.loads((folder / BEGAN).read_text()))
        from_s = began_at_s + request.warm_up_s
        _await(lambda: time.time() >= from_s, request.warm_up_s + 60.0, runs, offers)
        before = cpu_clock(runs.process.pid, time.time())
        talk(f"{side}: warmed up; measuring {request.seconds:g} s")
        until_s = from_s + request.seconds
        _await(lambda: time.time() >= until_s, request.seconds + 60.0, runs, offers)
        cpu = cpu_clock(runs.process.pid, time.time()).since(before)
        _await((folder / OFFERED).exists, TAIL_S + 60.0, runs, offers)
        offered = Offered(**json.loads((folder / OFFERED).read_text()))
        until_s = offered.ended_at_s + request.grace_s
        _await(lambda: time.time() >= until_s, request.grace_s + 60.0, runs)
        (folder / STOP).touch()
        talk(f"{side}: stopping")
        _await((folder / ENDED).exists, STOP_WITHIN_S, runs)
        errors = json.loads((folder / ENDED).read_text())
    window_us = (round(from_s * 1e6), round((from_s + request.seconds) * 1e6))
    conditions = {**cpu, "late_p95_s": offered.late_p95_s, "late_max_s": offered.late_max_s}
    return _read(side, folder, queries, window_us, until_s, errors, conditions)


def _read(
    side: str,
    folder: Path,
    queries: Sequence[Selection],
    window_us: tuple[int, int],
    until_s: float,
    errors: list[str],
    conditions: dict[str, float],
) -> SideResult:
    """Read what the side has committed and compare it with the answers."""
    answers = expected(folder, queries, window_us)
    rows_by_query = {}
    for query in queries:
        commits = commits_of(side, results_of(side, folder, query.name))
        rows_by_query[query.name] = measured(commits, answers[query.name], window_us, until_s)
    by_class, by_query = lines_of(queries, rows_by_query)
    return SideResult(side, by_class, by_query, errors, conditions)


@dataclass(frozen=True)
class Part:
    """A process of the comparison: a side, or its generator."""

    name: str
    folder: Path
    process: subprocess.Popen[bytes]

    def last_words(self) -> str:
        text = (self.folder / f"{self.name}.log").read_text(errors="replace").strip()
        last = text.splitlines()[-1] if text else "it said nothing"
        if (self.folder / ENDED).exists():
            last = "; ".join(json.loads((self.folder / ENDED).read_text())) or last
        return f"the {self.name} process ended with code {self.process.returncode}: {last}"


@contextmanager
def _started(folder: Path, request: Request, name: str) -> Iterator[Part]:
    """Start a part of this script in its own process group, so that its JVM ends with it."""
    command = [
        sys.executable, os.path.abspath(__file__), "--part", name, "--keep", str(folder),
        "--queries", str(request.queries), "--rate", str(request.rate_per_s),
        "--seconds", str(request.seconds), "--warm-up", str(request.warm_up_s),
        "--tick", str(request.tick_s), "--mix", request.mix,
    ]  # fmt: skip
    with (folder / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            start_new_session=True,
        )  # fmt: skip
    try:
        yield Part(name, folder, process)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _await(condition: Callable[[], bool], within_s: float, *parts: Part) -> None:
    """Wait for a condition while the parts live.

    Raises:
        SideFailed: a part has ended, or time ran out.
    """
    ends_s = time.perf_counter() + within_s
    while not condition():
        ended = [part for part in parts if part.process.poll() is not None]
        if ended and not condition():
            raise SideFailed(ended[0].last_words())
        if time.perf_counter() > ends_s:
            raise SideFailed(f"gave no sign for {within_s:g} s")
        time.sleep(0.02)


@contextmanager
def working_folder(keep: Path | None) -> Iterator[Path]:
    """Yield an empty folder: a new one in `keep`, or one that is removed afterwards."""
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        yield Path(tempfile.mkdtemp(prefix="native-", dir=keep.absolute()))
        return
    folder = Path(tempfile.mkdtemp(prefix="headgate-bench-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _part(arguments: argparse.Namespace) -> int:
    """Run the generator or a side in this process, which was started for it."""
    queries = MIXES[arguments.mix](arguments.queries)
    if arguments.part == "generator":
        seconds = arguments.warm_up + arguments.seconds + TAIL_S
        generate(arguments.keep, arguments.rate, seconds, arguments.tick, streams_of(queries))
    else:
        run_side(arguments.part, arguments.keep, queries)
    return 0


def interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def talk(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _sides(text: str) -> list[str]:
    sides = text.split(",")
    unknown = [side for side in sides if side not in MASTERS]
    if unknown or len(set(sides)) < len(sides):
        raise argparse.ArgumentTypeError(f"{text!r}: give some of {','.join(MASTERS)}, each once")
    return sides


def _above(least: float) -> Callable[[str], float]:
    def number(text: str) -> float:
        value = float(text)
        if not value > least:
            raise argparse.ArgumentTypeError(f"{text}: give a number above {least:g}")
        return value

    return number


def _at_least_one(text: str) -> int:
    if int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text}: give 1 or more")
    return int(text)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Compare N native streaming queries with the same queries in Headgate.",
        epilog="example: python bench/native.py --queries 24 --json > 24.json",
    )
    parser.add_argument("--queries", type=_at_least_one, required=True, metavar="N")
    parser.add_argument("--seconds", type=_above(0), default=30.0, help="seconds to measure (30)")
    parser.add_argument("--warm-up", type=_above(0), default=20.0, help="seconds before that (20)")
    parser.add_argument("--rate", type=_above(0), default=1500.0, help="tuples a second (1500)")
    parser.add_argument("--tick", type=_above(0), default=0.5, help="seconds per file (0.5)")
    parser.add_argument("--grace", type=_above(0), default=30.0, help="seconds after that (30)")
    parser.add_argument(
        "--sides",
        type=_sides,
        default=["native-fifo", "native-fair", "headgate"],
        help=",".join(MASTERS),
    )
    parser.add_argument("--mix", choices=list(MIXES), default="demo", help="which queries (demo)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep all files, in DIR")
    parser.add_argument("--part", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
