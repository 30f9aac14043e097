"""Drawings of the network: streams, the parts that queries share, queries and their sinks."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path as File
from typing import Any

from headgate.config import Pipeline
from headgate.model.network.derived_streams import producers
from headgate.model.stream import DERIVED
from headgate.runtime.describe.explanation import Explanation, explained

WIDEST = 76
"""Most characters of a query's text in the drawing."""

COLOURS = ("#b3402a", "#2a6fb3", "#3d8c40", "#8a4fb0", "#b07d1a", "#2f8f8f", "#6b6b6b")
"""Colors of the classes in their order; all further classes have the last one."""

ROW, BOX, GAP = 46, 36, 18
COLUMNS = (20, 260, 560)
WIDTHS = (180, 240, 620)
"""x and widths of streams, parts and queries in the picture."""

STYLE = """
body { font: 14px system-ui, sans-serif; margin: 1.5em; color: #222; background: #fff }
rect { fill: #fff; stroke: #999 } path { fill: none; stroke: #bbb; stroke-width: 1.5 }
text { font: 12px system-ui, sans-serif; fill: #222 } .small { font-size: 11px; fill: #666 }
"""


@dataclass(frozen=True, kw_only=True)
class Part:
    """Queries that run as one because they share code, panes or an answer; or a single query."""

    streams: tuple[str, ...]
    shape: str
    queries: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """A network: streams with their formats, parts, and queries by name."""

    policy: str
    streams: Mapping[str, str]
    parts: tuple[Part, ...]
    queries: Mapping[str, Mapping[str, str]]

    @classmethod
    def of(
        cls,
        queries: Sequence[Explanation],
        streams: Mapping[str, str],
        policy: str,
    ) -> "Drawing":
        """Draw queries.

        Args:
            streams: the formats of the streams, by name.
        """
        parts: dict[tuple[str, frozenset[str]], Part] = {}
        for query in queries:
            together = frozenset({query.query, *query.shares_code_with})
            part = parts.get((query.stream, together))
            parts[query.stream, together] = Part(
                streams=tuple(query.reads),
                shape=query.shape or "not running" if part is None else part.shape,
                queries=(*(() if part is None else part.queries), query.query),
            )
        facts = {
            query.query: {
                "class": query.query_class,
                "text": " ".join(query.sql.split()),
                "sink": query.sink,
                "lane": next(iter((query.lane or "").replace(":", " ").split()), ""),
                "state": query.state or "",
            }
            for query in queries
        }
        order = list(streams)
        sorted_parts = sorted(parts.values(), key=lambda part: order.index(part.streams[0]))
        return cls(policy=policy, streams=dict(streams), parts=tuple(sorted_parts), queries=facts)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Drawing":
        """Return the drawing that `to_dict` was called on."""
        parts = tuple(
            Part(
                streams=tuple(part["streams"]),
                shape=part["shape"],
                queries=tuple(part["queries"]),
            )
            for part in data["parts"]
        )
        return cls(
            policy=data["policy"], streams=data["streams"], parts=parts, queries=data["queries"]
        )

    def text(self) -> str:
        """Return the drawing as text for a screen: below every stream, the queries that read it."""
        lines = [f"{len(self.queries)} queries under {self.policy}"]
        for stream, kind in self.streams.items():
            lines.append(f"{stream} ({kind})")
            below = [part for part in self.parts if part.streams[0] == stream]
            for part, last in _with_last(below):
                lines += self._lines(part, "└─ " if last else "├─ ", "   " if last else "│  ")
        return "\n".join(lines)

    def _lines(self, part: Part, branch: str, below: str) -> Iterator[str]:
        more = f"with {', '.join(part.streams[1:])}: " if len(part.streams) > 1 else ""
        if len(part.queries) == 1:
            yield branch + more + self._line(part.queries[0])
            return
        yield f"{branch}{more}{part.shape}"
        for name, last in _with_last(part.queries):
            yield below + ("└─ " if last else "├─ ") + self._line(name)

    def _line(self, name: str) -> str:
        query = self.queries[name]
        lane = f", {query['lane']}" if query["lane"] else ""
        return f"{name} [{query['class']}{lane}] {_short(query['text'])} → {query['sink']}"

    def html(self) -> str:
        """Return a self-contained HTML page with the drawing."""
        boxes, lines = list(self._boxes()), list(self._paths())
        height = max((y for _, y in self._places()[2].values()), default=0) + ROW + GAP
        classes = "".join(
            f'<span style="color:{colour}">■</span> {escape(name)} &nbsp; '
            for name, colour in self._colours.items()
        )
        count = sum(len(part.queries) > 1 for part in self.parts)
        runs = any(query["state"] for query in self.queries.values())
        shared = f"{count} parts are shared" if runs else "sharing is known only while they run"
        return (
            f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Headgate: the'
            f" network</title><style>{STYLE}</style></head><body>\n<h1>The network</h1>\n"
            f"<p>{len(self.queries)} queries over {len(self.streams)} streams under"
            f" {escape(self.policy)}; {shared}. {classes}</p>\n"
            f'<svg width="{COLUMNS[2] + WIDTHS[2] + 20}" height="{height}">\n'
            + "\n".join([*lines, *boxes])
            + "\n</svg>\n</body></html>\n"
        )

    @property
    def _colours(self) -> dict[str, str]:
        names = dict.fromkeys(query["class"] for query in self.queries.values())
        return {name: COLOURS[min(rank, len(COLOURS) - 1)] for rank, name in enumerate(names)}

    def _places(self) -> tuple[dict[str, tuple[int, int]], ...]:
        """Return the places of streams, parts (by number) and queries.

        Queries are one below the other, a part is amid its queries, a stream amid its parts.
        """
        queries, parts, y = {}, {}, 10
        for number, part in enumerate(self.parts):
            for name in part.queries:
                queries[name] = COLUMNS[2], y
                y += ROW
            first, last = queries[part.queries[0]][1], queries[part.queries[-1]][1]
            parts[str(number)] = COLUMNS[1], (first + last) // 2
            y += GAP
        streams, free = {}, 10
        for stream in self.streams:
            heights = [
                height
                for key, (_, height) in parts.items()
                if self.parts[int(key)].streams[0] == stream
            ]
            free = max(free, sum(heights) // len(heights) if heights else free)
            streams[stream] = COLUMNS[0], free
            free += ROW
        return streams, parts, queries

    def _boxes(self) -> Iterator[str]:
        streams, parts, queries = self._places()
        for name, place in streams.items():
            yield _box(place, WIDTHS[0], name, self.streams[name])
        for number, place in parts.items():
            part = self.parts[int(number)]
            if len(part.queries) > 1:
                head, _, rest = part.shape.partition(": ")
                yield _box(place, WIDTHS[1], head, rest, title=part.shape)
        for name, place in queries.items():
            query = self.queries[name]
            words = [query["class"], query["lane"], query["state"]]
            about = f"{', '.join(word for word in words if word)} → {query['sink']}"
            head = f"{name}: {_short(query['text'])}"
            colour = self._colours[query["class"]]
            yield _box(place, WIDTHS[2], head, about, title=query["text"], colour=colour)

    def _paths(self) -> Iterator[str]:
        streams, parts, queries = self._places()
        for number, part in enumerate(self.parts):
            place = parts[str(number)]
            target = place if len(part.queries) > 1 else queries[part.queries[0]]
            for stream in part.streams:
                yield _curve(streams[stream], WIDTHS[0], target)
            if len(part.queries) > 1:
                for name in part.queries:
                    yield _curve(place, WIDTHS[1], queries[name])


def drawn(pipeline: Pipeline) -> Drawing:
    """Draw the network of a pipeline file that does not run, without what its queries share."""
    streams = {stream.name: stream.format for stream in pipeline.stream_models()}
    models = pipeline.query_models()
    streams |= dict.fromkeys(producers(models), DERIVED)
    queries = [explained(pipeline, query.name) for query in models]
    return Drawing.of(queries, streams, pipeline.policy.name)


def write_page(drawing: Drawing, path: str) -> None:
    """Write the HTML page of a drawing to a file."""
    File(path).write_text(drawing.html(), encoding="utf-8")


def _with_last(items: Sequence[Any]) -> Iterator[tuple[Any, bool]]:
    """Return an iterator over the items, each with whether it is the last."""
    return ((item, index == len(items) - 1) for index, item in enumerate(items))


def _short(text: str) -> str:
    return text if len(text) <= WIDEST else text[: WIDEST - 1] + "…"


def _box(
    place: tuple[int, int], width: int, head: str, about: str, *, title: str = "", colour: str = ""
) -> str:
    x, y = place
    stroke = f' style="stroke:{colour}"' if colour else ""
    return (
        f"<g><title>{escape(title or head)}</title>"
        f'<rect x="{x}" y="{y}" width="{width}" height="{BOX}" rx="4"{stroke}/>'
        f'<text x="{x + 8}" y="{y + 15}">{escape(head)}</text>'
        f'<text class="small" x="{x + 8}" y="{y + 29}">{escape(about)}</text></g>'
    )


def _curve(start: tuple[int, int], width: int, end: tuple[int, int]) -> str:
    x, y = start[0] + width, start[1] + BOX // 2
    to_x, to_y = end[0], end[1] + BOX // 2
    half = (x + to_x) // 2
    return f'<path d="M{x} {y} C{half} {y} {half} {to_y} {to_x} {to_y}"/>'
