"""The ledger of a seed: a line of JSON for each fault made, so that a later run resumes there."""

import json
import os
import platform
import subprocess
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyspark

from chaos.plan import KINDS, Outcome

ROOT = Path(__file__).parents[2]


class Ledger:
    """The outcomes of a seed, in a file to which every outcome is appended."""

    def __init__(self, folder: Path, seed: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file, self._seed = folder / "outcomes.jsonl", seed
        lines = self._file.read_text().splitlines() if self._file.exists() else []
        self._rows: list[dict[str, Any]] = [json.loads(line) for line in lines]

    @property
    def done(self) -> set[int]:
        """The numbers of the faults that were made."""
        return {row["number"] for row in self._rows}

    def add(self, outcome: Outcome) -> None:
        row = {**asdict(outcome), "commit": _commit(), "at": _now()}
        self._rows.append(row)
        with self._file.open("a") as file:
            file.write(json.dumps(row) + "\n")

    def results(self, planned: int) -> dict[str, Any]:
        """Return all outcomes as a table, and when, where and on what they came about.

        Args:
            planned: how many faults the seed has.
        """
        rows = []
        for kind in KINDS:
            outcomes = [row for row in self._rows if row["kind"] == kind]
            if outcomes:
                sums = {key: sum(row[key] for row in outcomes)
                        for key in ("lost", "twice", "refused")}  # fmt: skip
                wrong = sum(bool(row["wrong"]) for row in outcomes)
                seconds = round(sum(row["seconds"] for row in outcomes), 1)
                rows.append(
                    {"kind": kind, "faults": len(outcomes), **sums, "wrong": wrong,
                     "seconds": seconds}
                )  # fmt: skip
        return {
            "seed": self._seed,
            "planned": planned,
            "commits": sorted({row["commit"] for row in self._rows}),
            "from": min((row["at"] for row in self._rows), default=""),
            "to": max((row["at"] for row in self._rows), default=""),
            "cores": os.cpu_count(),
            "system": platform.platform(),
            "pyspark": pyspark.__version__,
            "rows": rows,
        }


def table(results: dict[str, Any]) -> str:
    """Return the results as a table for a terminal."""
    heads = ("faults", "lost", "twice", "refused", "wrong", "seconds")
    rows = results["rows"]
    total = {"kind": "all", **{head: round(sum(row[head] for row in rows), 1) for head in heads}}
    width = max(len(row["kind"]) for row in [*rows, total])
    lines = [" " * width + "".join(f"{head:>9}" for head in heads)]
    for row in [*rows, total]:
        lines.append(f"{row['kind']:<{width}}" + "".join(f"{row[head]:>9,}" for head in heads))
    return "\n".join(lines)


def is_clean(results: dict[str, Any]) -> bool:
    """Return True if nothing was lost, nothing came twice, and nothing else went wrong."""
    return not any(row["lost"] or row["twice"] or row["wrong"] for row in results["rows"])


def write(file: Path, results: dict[str, Any]) -> None:
    file.write_text(json.dumps(results, indent=1) + "\n")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _commit() -> str:
    command: Sequence[str] = ("git", "-C", str(ROOT), "rev-parse", "--short", "HEAD")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"
