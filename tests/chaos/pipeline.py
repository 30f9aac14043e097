"""The pipeline of a chain of faults, and what is lost or twice in its results.

Most queries are those of `killed_pipeline`. Two more get another text again and again.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import duckdb
import pyarrow.parquet as pq
import yaml
from independent import Rows, committed_rows, rows_of
from kill_pipeline import VIEWS, answer, late_tuples, offer, pipeline_of, sources_in

RESTARTED = ("cut", "sliding", "dry", "hot", "near")
"""Queries of several kinds of sinks and computations."""

NAMES = ("warm_windows", "hot", "dry", "cut", "sliding", "sessions", "near", "bounded")
TAKEN = ("warm_windows", "cut", "sliding", "sessions", "bounded")
"""Queries without a manifest, whose results a consumer may take away."""

HUNG = "hung"
FAR = "bounded"
"""The query whose results may be on a disk of their own."""


@dataclass(frozen=True)
class AlteredQuery:
    """A query with a text for every version, where `{v}` is the version.

    The last column is a time. Its seconds, rounded down, say to which piece of the input a row
    belongs: to a file, or to a window that ends then.

    Args:
        first: the first piece that there is.
    """

    sql: str
    oracle: str
    first: int

    def text(self, version: int) -> str:
        return self.sql.format(v=version, least=version * 7 % 30)

    def rows(self, db: duckdb.DuckDBPyConnection, version: int, pieces: int) -> Mapping[int, Rows]:
        """Return DuckDB's answer of a version over all input, by piece."""
        oracle = self.oracle.format(v=version, least=version * 7 % 30, last=pieces - 1)
        by_piece: dict[int, Rows] = defaultdict(Counter)
        for row, count in rows_of(db, oracle).items():
            by_piece[int(row[-1])][row] += count
        return by_piece


ALTERED = {
    "changing": AlteredQuery(
        "SELECT location, temperature + {v} AS t, ts FROM sensors WHERE temperature > {least}",
        "SELECT location, temperature + {v}, ts FROM all_sensors WHERE temperature > {least}",
        first=0,
    ),
    "tops": AlteredQuery(
        "SELECT location, max(temperature) + {v} AS top, window.end AS e"
        " FROM sensors [RANGE 2 SECONDS SLIDE 1 SECOND] GROUP BY location",
        "SELECT location, max(temperature) + {v}, to_timestamp(e) FROM all_sensors,"
        " generate_series(1, {last}) AS ends(e)"
        " WHERE epoch(ts) >= e - 2 AND epoch(ts) < e GROUP BY location, e",
        first=1,
    ),
}


@dataclass
class Differences:
    """How many rows are missing from the results or are there too often, with examples."""

    lost: int = 0
    twice: int = 0
    notes: tuple[str, ...] = ()

    def compare(self, name: str, results: Rows, expected: Rows) -> None:
        lost, twice = expected - results, results - expected
        self.lost += lost.total()
        self.twice += twice.total()
        for word, rows in (("lost", lost), ("twice", twice)):
            if rows:
                first = min(rows, key=repr)
                note = f"{name}: {rows.total()} of {expected.total()} {word}, such as {first}"
                self.notes = (*self.notes, note)


class World(Protocol):
    """The input of a chain, its pipeline file, and the check of its results."""

    def offer(self, files: int) -> Mapping[str, int]:
        """Offer more tuples; return how many each query has been offered since the beginning."""

    def write(self, state: Path, versions: Mapping[str, int]) -> Path:
        """Write the pipeline file of the next run, with the versions of altered queries."""

    def differences(self, state: Path, versions: Mapping[str, int]) -> Differences:
        """Compare the results with the batch answers over all tuples that were offered."""


class Forest:
    """Three streams of files under a directory.

    Args:
        settings: keys of the pipeline file that this chain has besides.
        far: a directory for the results of one query.
        hangs: whether there is a query that can hang.
    """

    def __init__(
        self, folder: Path, ingest: str = "auto", *, far: Path | None = None, hangs: bool = False,
        **settings: Any,
    ) -> None:  # fmt: skip
        self._folder, self._ingest, self._settings = folder, ingest, settings
        self.far, self._hangs = far, hangs
        self._files = 0

    def offer(self, files: int) -> dict[str, int]:
        offered = offer(self._folder, self._files, files)
        self._files += files
        chosen = {name: count for name, count in offered.items() if name in {*NAMES, *VIEWS}}
        more = [*ALTERED, *[HUNG] * self._hangs]
        return {**chosen, **dict.fromkeys(more, offered["sliding"])}

    def write(self, state: Path, versions: Mapping[str, int]) -> Path:
        pipeline = pipeline_of(self._folder, self._ingest, NAMES)
        queries = pipeline["queries"]
        receipts = {"folder": str(self._folder / "receipts")}
        queries["near"]["sink"] = {"format": "receipts", "options": receipts}
        if self.far is not None:
            queries[FAR]["sink"]["path"] = str(self.far)
        if self._hangs:
            queries[HUNG] = {"class": "N", "sql": "SELECT held(temperature) AS t, ts FROM sensors"}
        for name, query in ALTERED.items():
            queries[name] = {"class": "H", "sql": query.text(versions.get(name, 1))}
        file = self._folder / "pipeline.yaml"
        file.write_text(yaml.safe_dump({**pipeline, **self._settings, "state": str(state)}))
        return file

    def differences(self, state: Path, versions: Mapping[str, int]) -> Differences:
        answers = Differences()
        with sources_in(self._folder) as db:
            for name in NAMES:
                results = self.far if name == FAR and self.far else state / "results" / name
                rows = committed_rows(results)
                if name == "near":
                    rows = _deliveries(self._folder / "receipts", answers)
                rows += committed_rows(self._folder / "taken" / name)
                answers.compare(name, rows, answer(db, name))
            if self._hangs:
                expected = rows_of(db, "SELECT temperature, ts FROM all_sensors")
                answers.compare(HUNG, committed_rows(state / "results" / HUNG), expected)
            for name, query in ALTERED.items():
                count = versions.get(name, 1)
                _compare_versions(db, name, query, state, count, self._files, answers)
            if list((self._folder / "late").glob("*.parquet")):
                answers.compare("late tuples", *late_tuples(db, self._folder))
        return answers


def _compare_versions(
    db: duckdb.DuckDBPyConnection,
    name: str,
    query: AlteredQuery,
    state: Path,
    versions: int,
    pieces: int,
    answers: Differences,
) -> None:
    """Compare each version with the answer of its text over its own part of the input.

    A version begins with its first piece and ends where the next one begins.
    """
    ends = pieces
    for version in range(versions, 0, -1):
        folder = state / "results" / (name if version == 1 else f"{name}.v{version}")
        results = committed_rows(folder)
        begins = min((int(row[-1]) for row in results), default=ends)
        begins = query.first if version == 1 else begins
        by_piece = query.rows(db, version, pieces)
        expected = sum((by_piece[piece] for piece in range(begins, ends)), Counter())
        answers.compare(f"{name}, version {version}", results, expected)
        ends = begins


def _deliveries(folder: Path, answers: Differences) -> Rows:
    """Return the rows of a receiver that keeps one result per key."""
    tables: dict[str, Any] = {}
    for file in sorted(folder.glob("*.parquet")):
        table, key = pq.read_table(file), file.name.partition("@")[0]
        if not table.equals(tables.setdefault(key, table)):
            answers.twice += table.num_rows
            answers.notes = (*answers.notes, f"near: {key} came again with other rows")
    rows: Rows = Counter()
    with duckdb.connect() as db:
        db.execute("SET TimeZone = 'UTC'")
        for table in tables.values():
            db.register("delivered", table)
            rows += rows_of(db, "FROM delivered")
    return rows


def take_away(folder: Path, state: Path, names: Iterable[str]) -> int:
    """Move all visible results of queries away, as a consumer does; return how many files."""
    count = 0
    for name in names:
        place = folder / "taken" / name
        place.mkdir(parents=True, exist_ok=True)
        for file in sorted((state / "results" / name).glob("[0-9]*.parquet")):
            file.rename(place / f"{len(list(place.iterdir())):04d}-{file.name}")
            count += 1
    return count
