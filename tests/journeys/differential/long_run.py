"""A run of many batches, one after the other, that can be interrupted and resumed."""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from shutil import rmtree
from typing import Any

from pyspark.sql import SparkSession

import differential
import headgate
from differential.batch import Tally, check, draw_questions
from differential.examples import Example, read
from differential.generator import families
from differential.minimal import minimal
from differential.trial import WAYS, Way
from differential.world import CHANGES, World

MINIMIZED = 12
"""How many differences of a batch are minimized; the others stay as they were drawn."""


@dataclass(frozen=True)
class Settings:
    """What a run checks.

    Batches take turns in time zones and, unless `all_ways` is set, in ways: every text runs on both
    lanes, on one of them with sharing. Every batch is drawn from the seed and its number, so a run
    may begin with any batch.
    """

    seed: int
    queries: int
    batch: int = 100
    zones: tuple[str, ...] = ()
    all_ways: bool = False
    minimize: bool = True
    first_batch: int = 1

    def zone(self, number: int) -> str:
        zones = self.zones or ("Europe/Berlin", "UTC", "America/New_York")
        return zones[number % len(zones)]

    def ways(self, number: int) -> tuple[Way, ...]:
        return WAYS if self.all_ways else WAYS[number % 2 * 2 :][:2]


class LongRun:
    """A run whose folder records which batches are finished.

    Args:
        tell: called with a progress line for every batch.
    """

    def __init__(
        self, spark: SparkSession, folder: Path, settings: Settings, tell: Callable[[str], None]
    ) -> None:
        self._spark, self._folder, self._settings, self._tell = spark, folder, settings, tell
        self._progress = folder / "progress.jsonl"
        self._worlds: dict[str, World] = {}
        self._examples: list[Example] = []
        self.tally, self.found = Tally(), 0

    def findings(self) -> Iterator[dict[str, Any]]:
        """Yield differences as plain data; batches of an earlier run are not run again."""
        settings = self._settings
        count = -(-settings.queries // settings.batch)
        finished, begun = self._remembered()
        self._tell(f"seed={settings.seed}, {settings.queries} queries, state in {self._folder}")
        began_s = time.monotonic()
        for number in range(settings.first_batch - 1, count):
            if number not in finished and begun[number] > 1:
                lost = {"what": "crashed", "detail": f"batch {number} ended the process twice"}
                finished[number] = {"batch": number, "findings": [lost], "tally": {}}
            elif number not in finished:
                self._remember({"begun": number})
                try:
                    finished[number] = self._run(number)
                except KeyboardInterrupt:
                    self._remember({"interrupted": number})
                    raise
                self._remember(finished[number])
            batch = finished[number]
            self.tally += _tally(batch["tally"])
            self.found += len(batch["findings"])
            yield from batch["findings"]
            self._tell(
                f"batch {number + 1} of {count}, {time.monotonic() - began_s:.0f} s:"
                f" {len(batch['findings'])} differences, {self.found} in all"
            )

    def summary(self) -> str:
        """Return counts, and refusals by reason."""
        tally = self.tally
        lines = [
            f"seed={self._settings.seed}: {tally.texts} texts, {tally.compared} runs:"
            f" {tally.agreed} agree, {tally.failed_alike} fail as in batch, {tally.refused}"
            f" refused, {self.found} differ",
            f"{tally.texts / max(tally.seconds.total(), 1):.1f} texts per second; seconds:"
            f" {_counts(tally.seconds)}",
            "kinds: " + _counts(tally.kinds),
            "drawn, but not accepted by Spark: " + _counts(tally.not_accepted),
        ]
        lines += [f"refused {count} times: {why}" for why, count in tally.refusals.most_common()]
        return "\n".join(lines)

    def _run(self, number: int) -> dict[str, Any]:
        settings, zone = self._settings, self._settings.zone(number)
        world = self._world(zone)
        if not self._examples:
            self._examples = read(world.session)
        size = min(settings.batch, settings.queries - number * settings.batch)
        drawn = families(f"{settings.seed} {number}", self._examples)
        began_s = time.monotonic()
        questions, others = draw_questions(world, drawn, size)
        batch_s = int(time.monotonic() - began_s)
        folder = self._folder / "gates"
        findings, tally = check(world, questions, settings.ways(number), folder)
        tally.not_accepted, tally.seconds["batch"] = others, batch_s
        if settings.minimize:
            smaller = {
                finding.case.sql: minimal(world, finding, questions, folder / "minimal").minimal
                for finding in findings[:MINIMIZED]
            }
            lines = [
                {**finding.line(), "minimal": smaller.get(finding.case.sql, "")}
                for finding in findings
            ]
        else:
            lines = [finding.line() for finding in findings]
        rmtree(folder, ignore_errors=True)
        place = {"seed": settings.seed, "batch": number}
        placed = [{**place, **line} for line in lines]
        return {"batch": number, "tally": dict(vars(tally)), "findings": placed}

    def _world(self, zone: str) -> World:
        assert zone in CHANGES, f"unknown zone {zone}: one of {', '.join(CHANGES)}"
        if zone not in self._worlds:
            folder = self._folder / "worlds" / zone.replace("/", "-")
            rmtree(folder, ignore_errors=True)
            self._worlds[zone] = World(self._spark, folder, self._settings.seed, zone)
        return self._worlds[zone]

    def _remembered(self) -> tuple[dict[int, dict[str, Any]], Counter[int]]:
        """Return finished batches, and how often others were begun."""
        wanted = {**json.loads(json.dumps(asdict(self._settings))), "code": _code()}
        if not self._progress.exists():
            self._remember({"settings": wanted})
        lines = [json.loads(line) for line in self._progress.read_text().splitlines()]
        if lines[0] != {"settings": wanted}:  # the folder is of other settings or other code
            self._progress.unlink()
            return self._remembered()
        finished = {line["batch"]: line for line in lines if "batch" in line}
        begun = Counter(line["begun"] for line in lines if "begun" in line)
        begun.subtract(line["interrupted"] for line in lines if "interrupted" in line)
        return finished, begun

    def _remember(self, line: dict[str, Any]) -> None:
        with self._progress.open("a") as file:
            file.write(json.dumps(line) + "\n")


def _code() -> str:
    """Return a digest of Headgate's code and of this test, so that other code starts afresh."""
    digest = sha256()
    for package in (headgate, differential):
        for file in sorted(Path(package.__path__[0]).rglob("*")):
            if file.suffix in (".py", ".java"):
                digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def _tally(fields: dict[str, Any]) -> Tally:
    counts = ("refusals", "kinds", "not_accepted", "seconds")
    return Tally(**{**fields, **{key: Counter(fields.get(key, {})) for key in counts}})


def _counts(counts: Counter[str]) -> str:
    return ", ".join(f"{kind} {count}" for kind, count in counts.most_common())
