"""A query of the differential test: a text for Headgate, and what the oracle needs to know."""

import re
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from differential.columns import quoted, written
from differential.tree import Tree, leaf

Kind = Literal[
    "stateless", "windows", "window()", "session_window()", "pairs", "bounded", "union"
]  # fmt: skip

HIDDEN = "closes_at_"
"""The column from which the oracle tells which windows of `window(...)` have closed."""


@dataclass(frozen=True)
class Window:
    """A window clause: by time in microseconds, or by the numbers of tuples."""

    axis: Literal["time", "rows"]
    size: int
    slide: int | None
    clause: str


_UNITS = {"MICROSECOND": 1, "MILLISECOND": 1_000, "SECOND": 1_000_000, "MINUTE": 60_000_000,
          "HOUR": 3_600_000_000, "DAY": 86_400_000_000}  # fmt: skip
_CLAUSE = re.compile(r"(RANGE|ROWS) (\d+)(?: (\w+?)S?)?(?: SLIDE (\d+)(?: (\w+?)S?)?)?")
_CALL = re.compile(r"\bwindow\([\w.]+, '([^']+)'(?:, '([^']+)')?\)")


def window(clause: str, *, slides: bool = True) -> Window:
    """Parse a window clause.

    Args:
        slides: whether a clause without SLIDE slides by its size; if not, it slides with every
            tuple.
    """
    match = _CLAUSE.fullmatch(clause)
    assert match is not None, clause
    axis, size, unit, slide, slide_unit = match.groups()
    length = int(size) * _UNITS.get(unit, 1)
    step = int(slide) * _UNITS.get(slide_unit, 1) if slide else length if slides else None
    return Window("rows" if axis == "ROWS" else "time", length, step, clause)


@dataclass(frozen=True)
class Source:
    """A stream in FROM."""

    stream: str
    alias: str = ""
    window: Window | None = None

    @property
    def written(self) -> str:
        """The stream as a user writes it."""
        window = "" if self.window is None else f" [{self.window.clause}]"
        return f"{self.stream}{window}{f' AS {written(self.alias)}' if self.alias else ''}"

    def read_from(self, view: str) -> str:
        """Return SQL that reads a view in place of the stream, under the same name."""
        return f"{view} AS {quoted(self.alias or self.stream)}"


@dataclass(frozen=True)
class Case:
    """A query, whose tree contains placeholders.

    `@0@` stands for the first source, `@1@` for the second, `@start@` and `@end@` for the bounds of
    a window. At `@near@` and `@final@` the oracle adds the conditions of a join of tuples as they
    arrive, and at `@close@` a column with the end of a window. `@order@` is the place of ORDER BY
    and LIMIT, which apply to every window of `window(...)` separately.

    Args:
        floats: whether floating-point sums may differ in their last digits.
        join: the type of a join of tuples as they arrive, in SQL's words.
        sink: the format of the files that Headgate writes.
        order: the columns of ORDER BY at `@order@`.
        limit: the number of LIMIT at `@order@`.
        bounds: how far before and after a tuple of the first stream its join partner may be, in
            microseconds, if the join bounds times.
        label: the kind of query, named after the function that drew it.
    """

    kind: Kind
    tree: Tree
    sources: tuple[Source, ...]
    floats: bool = False
    join: str = ""
    sink: Literal["parquet", "csv", "json"] = "parquet"
    order: str = ""
    limit: int = 0
    bounds: tuple[int, int] = (0, 0)
    label: str = "by hand"

    @property
    def streams(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(source.stream for source in self.sources))

    @property
    def sql(self) -> str:
        """The text for Headgate."""
        sources = [source.written for source in self.sources]
        order = f" ORDER BY {self.order} LIMIT {self.limit}"
        return self.text(sources, start="window.start", end="window.end", order=order)

    def text(
        self,
        sources: list[str],
        *,
        start: str = "",
        end: str = "",
        near: str = "",
        final: str = "",
        close: str = "",
        order: str = "",
    ) -> str:
        """Return the text with all placeholders replaced."""
        text = self.tree.text
        for number, source in enumerate(sources):
            text = text.replace(f"@{number}@", source)
        places = {
            "start": start, "end": end, "near": near, "final": final, "close": close,
            "order": order,
        }  # fmt: skip
        for place, replacement in places.items():
            text = text.replace(f"@{place}@", replacement)
        return text

    @property
    def called(self) -> Window:
        """The window of the `window(...)` call in the text."""
        call = _CALL.search(self.tree.text)
        assert call is not None, self.tree.text
        return window(f"RANGE {call[1]} SLIDE {call[2] or call[1]}")

    def data(self) -> dict[str, Any]:
        """Return the query as plain data for `from_data`."""
        return {**asdict(replace(self, tree=leaf(""))), "tree": self.tree.text}

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> "Case":
        """Return the query that `data` has turned into plain data."""
        sources = tuple(
            Source(**{**source, "window": source["window"] and Window(**source["window"])})
            for source in data["sources"]
        )
        bounds = tuple(data.get("bounds", (0, 0)))
        tree = leaf(data["tree"])
        return cls(**{**data, "tree": tree, "sources": sources, "bounds": bounds})

    def with_tree(self, tree: Tree) -> "Case":
        """Return a copy of the query with another text."""
        return replace(self, tree=tree)
