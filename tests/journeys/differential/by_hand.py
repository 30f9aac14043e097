"""Short ways to write a query of the differential test by hand."""

from differential.cases import Case, Kind, Source, window
from differential.tree import leaf


def over(stream: str, *texts: str, kind: Kind = "stateless", alias: str = "") -> list[Case]:
    """Return texts over one stream without a window clause."""
    return [Case(kind, leaf(text), (Source(stream, alias),), floats=True) for text in texts]


def windows(stream: str, clause: str, *texts: str, alias: str = "") -> list[Case]:
    """Return texts over the windows of one stream."""
    source = Source(stream, alias, window(clause))
    return [Case("windows", leaf(text), (source,), floats=True) for text in texts]


def two_windows(one: tuple[str, str], two: tuple[str, str], *texts: str) -> list[Case]:
    """Return texts over the windows `a` and `b` of two streams with the same slide."""
    sources = tuple(
        Source(stream, alias, window(clause))
        for (stream, clause), alias in zip((one, two), "ab", strict=True)
    )
    return [Case("windows", leaf(text), sources, floats=True) for text in texts]


def pairs(one: tuple[str, str], two: tuple[str, str], *joins: tuple[str, str]) -> list[Case]:
    """Return joins, by type and text, of tuples `a` and `b` of two streams as they arrive."""
    sources = tuple(
        Source(stream, alias, window(clause, slides=False))
        for (stream, clause), alias in zip((one, two), "ab", strict=True)
    )
    return [Case("pairs", leaf(text), sources, join=join) for join, text in joins]


def to_files(case: Case, sink: str) -> Case:
    """Return a copy of a case whose results are files of another format."""
    return Case(case.kind, case.tree, case.sources, case.floats, case.join, sink)  # type: ignore[arg-type]


HALF, SECOND, TEN = "RANGE 500 MILLISECONDS", "RANGE 1 SECOND", "RANGE 10 SECONDS SLIDE 5 SECONDS"
