"""The random parts of generated queries: streams, columns, conditions, windows."""

from collections.abc import Sequence
from random import Random

from differential.cases import Source, Window
from differential.columns import LAYOUTS
from differential.examples import Example
from differential.expressions import Corpus, Expressions
from differential.tree import Tree, leaf, listed
from differential.world import SECOND

STREAMS = ["plain"] * 10 + ["wild"] * 5 + ["date"] * 3 + ["window"] * 2 + ["collated"] * 2
RARE = ["times", "spans", "variants", "voids"] * 3 + ["months"]
VIEWS = ["parsed", "parsed", "again"]

SPANS = {
    "500 MILLISECONDS": SECOND // 2, "2500 MILLISECONDS": 5 * SECOND // 2, "5 SECONDS": 5 * SECOND,
    "10 SECONDS": 10 * SECOND, "20 SECONDS": 20 * SECOND, "45 SECONDS": 45 * SECOND,
    "1 MINUTE": 60 * SECOND, "90 SECONDS": 90 * SECOND, "1 HOUR": 3600 * SECOND,
    "1 DAY": 86_400 * SECOND,
}  # fmt: skip
SLIDES = ["10 SECONDS", "20 SECONDS", "45 SECONDS", "1 MINUTE", "1 HOUR"]


class Draw:
    """A source of random parts of queries."""

    def __init__(self, random: Random, examples: Sequence[Example]) -> None:
        self.random = random
        self.corpus = Corpus(random, examples)

    def choice(self, *texts: str) -> str:
        return self.random.choice(texts)

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def source(self, window: Window | None = None) -> Source:
        """Draw a stream, mostly of common types, with or without an alias."""
        (streams,) = self.random.choices([STREAMS, RARE, VIEWS], [75, 15, 10])
        alias = self.choice("", "", "", "x", "e", "window", "date", "null")
        return Source(self.random.choice(streams), alias, window)

    def timed(self, window: Window | None = None) -> Source:
        """Draw a stream for which `window.end` can only mean the end of a window."""
        while True:
            source = self.source(window)
            if "window" not in (source.alias, source.stream):
                return source

    def over(self, source: Source, alias: str | None = None) -> Expressions:
        """Return a source of random expressions over a stream, with or without its alias."""
        if alias is None:
            alias = source.alias if self.chance(0.3) else ""
        return Expressions(self.random, self.corpus, LAYOUTS[source.stream], alias)

    def items(self, over: Expressions, source: Source, most: int = 3) -> list[Tree]:
        """Draw output columns with different names."""
        draw = over.over_own_types if source.stream in RARE else over.any
        count = self.random.randint(1, most)
        return [Tree((draw(), f" AS c{number}")) for number in range(count)]

    def item(self, over: Expressions, source: Source) -> Tree:
        """Draw one output column."""
        return self.items(over, source, 1)[0]

    def where(self, over: Expressions, share: float = 0.5) -> Tree:
        """Draw a WHERE clause, or none."""
        if not self.chance(share):
            return leaf("")
        return Tree((" WHERE ", over.condition()), optional=True)

    def aggregates(self, over: Expressions) -> Tree:
        """Draw one to three aggregates with different names."""
        items = []
        for number in range(self.random.randint(1, 3)):
            drawn = over.aggregate() if self.chance(0.5) else over.own_aggregate()
            items.append(Tree((drawn, f" AS a{number}")))
        return listed(items)

    def span(self, least: int, most: int) -> str:
        """Draw a length of time between two numbers of microseconds."""
        return self.choice(*(name for name, micros in SPANS.items() if least <= micros <= most))

    def window(self) -> Window:
        """Draw a window by time or by number; a tuple is in few windows at a time."""
        if self.chance(0.3):
            size, slide = self.random.choice([(5, 2), (4, 4), (3, 10), (20, 7), (1, 1), (100, 15)])
            clause = f"ROWS {size}" if size == slide else f"ROWS {size} SLIDE {slide}"
            return Window("rows", size, slide, clause)
        slides = self.choice(*SLIDES)
        if self.chance(0.2):
            return Window("time", SPANS[slides], SPANS[slides], f"RANGE {slides}")
        return self.sliding(slides, self.span(0, 8 * SPANS[slides]))

    def sliding(self, slide: str, size: str) -> Window:
        """Return a window by time with a slide."""
        return Window("time", SPANS[size], SPANS[slide], f"RANGE {size} SLIDE {slide}")
