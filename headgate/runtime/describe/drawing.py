"""The network of a run, drawn: streams, the parts that queries share, queries and their sinks."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path as File
from typing import Any

from headgate.config import Pipeline
from headgate.model.stream import DERIVED
from headgate.runtime.describe.explanation import Explanation, explained

WIDEST = 76
"""Letters of a query's text that are shown."""

COLOURS = ("#b3402a", "#2a6fb3", "#3d8c40", "#8a4fb0", "#b07d1a", "#2f8f8f", "#6b6b6b")
"""One for each class, from the first; the last for all that follow."""

ROW, BOX, GAP = 46, 36, 18
COLUMNS = (20, 260, 560)
WIDTHS = (180, 240, 620)
"""Places and widths of streams, parts and queries in the picture."""

STYLE = """
body { font: 14px system-ui, sans-serif; margin: 1.5em; color: #222; background: #fff }
rect { fill: #fff; stroke: #999 } path { fill: none; stroke: #bbb; stroke-width: 1.5 }
text { font: 12px system-ui, sans-serif; fill: #222 } .small { font-size: 11px; fill: #666 }
"""


@dataclass(frozen=True, kw_only=True)
class Part:
    """What some queries run as: those that share code, panes or an answer; or one by itself."""

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
        """Draws queries.

        Args:
            streams: the format of each stream that a source fills.
        """
        parts: dict[tuple[str, frozenset[str]], Part] = {}
        for each in queries:
            together = frozenset({each.query, *each.shares_code_with})
            part = parts.get((each.stream, together))
            parts[each.stream, together] = Part(
                streams=tuple(each.reads),
                shape=each.shape or "not running" if part is None else part.shape,
                queries=(*(() if part is None else part.queries), each.query),
            )
        facts = {
            each.query: {
                "class": each.query_class,
                "text": " ".join(each.sql.split()),
                "sink": each.sink,
                "lane": next(iter((each.lane or "").replace(":", " ").split()), ""),
                "state": each.state or "",
            }
            for each in queries
        }
        order = list(streams)
        found = sorted(parts.values(), key=lambda part: order.index(part.streams[0]))
        return cls(policy=policy, streams=dict(streams), parts=tuple(found), queries=facts)

    def to_dict(self) -> dict[str, Any]:
        """Gives plain data for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Drawing":
        """Gives the drawing that `to_dict` was called on."""
        parts = tuple(
            Part(
                streams=tuple(each["streams"]),
                shape=each["shape"],
                queries=tuple(each["queries"]),
            )
            for each in data["parts"]
        )
        return cls(
            policy=data["policy"], streams=data["streams"], parts=parts, queries=data["queries"]
        )

    def text(self) -> str:
        """Gives it for a screen: below every stream what reads it."""
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
        """Gives it as a page with a picture that needs nothing else."""
        boxes, lines = list(self._boxes()), list(self._paths())
        height = max((y for _, y in self._places()[2].values()), default=0) + ROW + GAP
        classes = "".join(
            f'<span style="color:{colour}">■</span> {escape(name)} &nbsp; '
            for name, colour in self._colours.items()
        )
        count = sum(len(part.queries) > 1 for part in self.parts)
        runs = any(each["state"] for each in self.queries.values())
        shared = f"{count} parts are shared" if runs else "what they share is known while they run"
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
        names = dict.fromkeys(each["class"] for each in self.queries.values())
        return {name: COLOURS[min(at, len(COLOURS) - 1)] for at, name in enumerate(names)}

    def _places(self) -> tuple[dict[str, tuple[int, int]], ...]:
        """Gives where streams, parts (by number) and queries stand: queries one below the other,
        a part amid its queries, a stream amid its parts.
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
            own = [y for at, (_, y) in parts.items() if self.parts[int(at)].streams[0] == stream]
            free = max(free, sum(own) // len(own) if own else free)
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
    """Draws the network of a pipeline file that does not run; who shares what is not known then."""
    streams = {each.name: each.format for each in pipeline.stream_models()}
    models = pipeline.query_models()
    streams |= {each.into: DERIVED for each in models if each.into is not None}
    queries = [explained(pipeline, each.name) for each in models]
    return Drawing.of(queries, streams, pipeline.policy.name)


def write_page(drawing: Drawing, path: str) -> None:
    """Writes the picture to a file."""
    File(path).write_text(drawing.html(), encoding="utf-8")


def _with_last(items: Sequence[Any]) -> Iterator[tuple[Any, bool]]:
    """Gives each item, and whether it is the last."""
    return ((item, at == len(items) - 1) for at, item in enumerate(items))


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
