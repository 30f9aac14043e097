"""Compare an older commit with this checkout: run both in turn and print the ratio of seconds.

Each part runs in its own process, without the native side. Old and new alternate, and every second
pair reverses their order. A row is the median of new / old over the pairs, with its range; a row
whose range includes 1 counts as equal. The exit code is 1 if a bar is missed. Run it on a machine
that does nothing else.

    python bench/checkouts.py --old 7040b04
    python bench/checkouts.py --old 7040b04 --only calls,saturation --pairs 3
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import saturation
from settings import prepare

HERE = Path(__file__).resolve().parent.parent
BAR, START_BAR = 1.10, 1.3
JOIN_BARS = {150: 1.7, 1_500: 1.4, 20_000: 1.4}
"""Bars of joins and sessions on the driver lane, by the number of rows of a call."""

Figures = dict[str, float]


@dataclass(frozen=True)
class Row:
    """One figure: its seconds on the old and on the new side, pair by pair."""

    name: str
    old: list[float]
    new: list[float]
    bar: float

    @property
    def ratios(self) -> list[float]:
        return [new / old for old, new in zip(self.old, self.new, strict=True)]

    @property
    def verdict(self) -> str:
        ratio, low, high = median(self.ratios), min(self.ratios), max(self.ratios)
        if ratio <= self.bar:
            return "pass"
        return "equal" if low <= 1 <= high else "MISS"

    def text(self, width: int) -> str:
        span = f"{min(self.ratios):.2f} to {max(self.ratios):.2f}"
        return (
            f"{self.name:{width}}  {median(self.old):10.4g}  {median(self.new):10.4g}"
            f"  {median(self.ratios):7.2f}  {span:>14}  ≤ {self.bar:<4g}  {self.verdict}"
        )


def stream_part(
    mix: str, queries: int, folder: Path, checkout: Path, tick_s: float = 0.1
) -> Figures:
    """Run queries over tuples that arrive at a rate; return responses and start-up seconds."""
    command = [
        "bench/native.py", "--sides", "headgate", "--json", "--mix", mix,
        "--queries", str(queries), "--seconds", "20", "--warm-up", "15", "--grace", "5",
        "--tick", str(tick_s),
    ]  # fmt: skip
    done = run(command, checkout)
    (side,) = json.loads(done.stdout)["sides"].values()
    if side["failed"]:
        raise RuntimeError(f"{mix}: {side['failed']}")
    ready = re.search(r"ready after (\d+) s", done.stderr)
    classes = side["classes"]
    return {
        "mean response of H": classes["H"]["mean_s"],
        "p95 response of H": classes["H"]["p95_s"],
        "mean response of all": classes["all"]["mean_s"],
        **({"start-up": float(ready[1])} if ready else {}),
    }


def saturation_part(folder: Path, checkout: Path) -> Figures:
    """Return the seconds that 50 queries need for tuples that are all there at the start."""
    state = Path(tempfile.mkdtemp(dir=folder))
    command = ["bench/saturation.py", "headgate", str(folder), str(state)]
    done = run(command, checkout)
    return {"seconds": json.loads(done.stdout.splitlines()[-1])["seconds"]}


def calls_part(folder: Path, checkout: Path) -> Figures:
    """Return the milliseconds of calls on the driver lane."""
    done = run([str(HERE / "bench" / "lane_calls.py")], checkout)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def joins_part(folder: Path, checkout: Path) -> Figures:
    """Return the seconds of queries that join the same streams."""
    done = run([str(HERE / "bench" / "shared_joins.py")], checkout)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def cut_part(folder: Path, checkout: Path) -> Figures:
    """Return the seconds that cut queries need for a backlog, and their mean response."""
    with tempfile.TemporaryDirectory(dir=folder) as state:
        done = run([str(HERE / "bench" / "cut_query.py"), state], checkout)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def run(command: list[str], checkout: Path) -> subprocess.CompletedProcess[str]:
    """Run a script with the package and the benchmarks of a checkout."""
    paths = os.pathsep.join([str(checkout), str(checkout / "bench")])
    return subprocess.run(
        [sys.executable, *command],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=True,
    )


PARTS: dict[str, Callable[[Path, Path], Figures]] = {
    "calls": calls_part,
    "50 queries": lambda folder, checkout: stream_part("demo", 50, folder, checkout),
    # With a file every 0.1 s, 500 queries are more than two cores can do.
    "500 distinct": lambda folder, checkout: stream_part("distinct", 500, folder, checkout, 0.5),
    "saturation": saturation_part,
    "joins": joins_part,
    "cut query": cut_part,
    **{
        f"CQC {name}": lambda folder, checkout, name=name: stream_part(
            f"cqc-{name}", 21, folder, checkout
        )
        for name in "ABC"
    },
}


def bar_of(figure: str) -> float:
    """Return the largest ratio of new to old that a figure may have.

    >>> bar_of("left join, 150 rows"), bar_of("start-up"), bar_of("filter and project, 150 rows")
    (1.7, 1.3, 1.1)
    """
    call = re.fullmatch(r"(.*), (\d+) rows", figure)
    if call and ("join" in call[1] or "session" in call[1]):
        return JOIN_BARS[int(call[2])]
    return START_BAR if figure == "start-up" else BAR


def compared(part: str, pairs: int, folder: Path, old: Path) -> list[Row]:
    """Run a part on both checkouts, pair by pair, and return its rows."""
    sides: dict[Path, list[Figures]] = {old: [], HERE: []}
    for pair in range(pairs):
        for checkout in (old, HERE) if pair % 2 == 0 else (HERE, old):
            side = "old" if checkout == old else "new"
            print(f"{part}: pair {pair + 1} of {pairs}, {side}", file=sys.stderr, flush=True)
            try:
                sides[checkout].append(PARTS[part](folder, checkout))
            except subprocess.CalledProcessError as error:
                print(error.stderr[-2000:], file=sys.stderr)
                raise
    names = [name for name in sides[HERE][0] if name in sides[old][0]]
    return [
        Row(
            f"{part}: {name}",
            [figures[name] for figures in sides[old]],
            [figures[name] for figures in sides[HERE]],
            bar_of(name),
        )
        for name in names
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--old", required=True, metavar="COMMIT", help="the older commit")
    parser.add_argument("--pairs", type=int, default=5, help="runs of each side (5)")
    parser.add_argument("--only", type=lambda text: text.split(","), help=",".join(PARTS))
    arguments = parser.parse_args()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="headgate-checkouts-") as name:
        folder, old = Path(name), Path(name) / "old"
        git = ["git", "-C", str(HERE), "worktree"]
        subprocess.run([*git, "add", "--detach", "-q", str(old), arguments.old], check=True)
        try:
            prepare(folder)
            saturation.write_source(folder)
            for part in arguments.only or PARTS:
                measured = compared(part, arguments.pairs, folder, old)
                for row in measured:
                    print(row.text(len(row.name)), file=sys.stderr, flush=True)
                rows += measured
        finally:
            subprocess.run([*git, "remove", "--force", str(old)], check=True)
    width = max(len(row.name) for row in rows)
    print(f"{'what':{width}}  {'old':>10}  {'new':>10}  new/old  {'range':>14}  bar")
    print("\n".join(row.text(width) for row in rows))
    return int(any(row.verdict == "MISS" for row in rows))


if __name__ == "__main__":
    sys.exit(main())
