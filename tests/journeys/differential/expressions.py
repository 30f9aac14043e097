"""Random typed expressions over the columns of a stream."""

from collections import defaultdict
from collections.abc import Sequence
from random import Random

from differential.columns import RESERVED, Layout, quoted, written
from differential.examples import Example
from differential.literals import literal
from differential.tree import Tree, leaf

NUMBERS = ("tinyint", "smallint", "int", "bigint", "decimal", "float", "double")
FLOATS = ("float", "double")
CASTS = {
    "string": ("int", "date", "double", "timestamp", "boolean", "decimal(10,2)", "binary"),
    "int": ("bigint", "string", "double", "decimal(10,2)", "tinyint", "boolean", "timestamp"),
    "bigint": ("int", "string", "double", "decimal(38,18)", "timestamp"),
    "double": ("float", "int", "string", "decimal(10,2)", "bigint"),
    "decimal": ("int", "double", "string", "decimal(38,18)", "decimal(4,1)"),
    "date": ("string", "timestamp", "timestamp_ntz"),
    "timestamp": ("date", "string", "timestamp_ntz", "bigint", "double", "time(6)"),
    "timestamp_ntz": ("date", "string", "timestamp"),
    "boolean": ("int", "string"),
    "time(6)": ("string", "time(3)"),
    "interval day to second": ("string", "interval day", "interval hour to second"),
    "interval year to month": ("string", "interval month", "interval year"),
    "variant": ("string", "int", "map<string,variant>"),
    "array<int>": ("array<string>", "string", "array<double>"),
    "binary": ("string",),
}
CLOCK = (
    ("hour(", ")", "int"), ("CAST(", " AS DATE)", "date"), ("CAST(", " AS STRING)", "string"),
    ("date_trunc('DAY', ", ")", "timestamp"), ("date_trunc('HOUR', ", ")", "timestamp"),
    ("date_format(", ", 'yyyy-MM-dd HH:mm:ss.SSSSSS')", "string"),
    ("to_utc_timestamp(", ", 'Europe/Berlin')", "timestamp"),
    ("from_utc_timestamp(", ", 'America/New_York')", "timestamp"),
    ("convert_timezone('UTC', 'Europe/Berlin', CAST(", " AS TIMESTAMP_NTZ))", "timestamp_ntz"),
    ("(", " + INTERVAL 1 DAY)", "timestamp"), ("(", " - INTERVAL 24 HOURS)", "timestamp"),
    ("(", " + INTERVAL 6 MONTHS)", "timestamp"), ("CAST(", " AS TIMESTAMP_NTZ)", "timestamp_ntz"),
    ("CAST(CAST(", " AS STRING) AS TIMESTAMP)", "timestamp"),
    ("timestampdiff(HOUR, TIMESTAMP'2024-03-30 12:00:00', ", ")", "bigint"),
    ("datediff(", ", DATE'2024-03-30')", "int"),
    ("CAST(TIMESTAMP_NTZ'2024-10-27 02:30:00' AS TIMESTAMP) > ", "", "boolean"),
    ("make_timestamp(2024, 3, 31, 2, 30, 0) <= ", "", "boolean"),
    ("weekday(", ")", "int"), ("to_timestamp_ltz(CAST(", " AS STRING))", "timestamp"),
    ("unix_micros(CAST(", " AS TIMESTAMP))", "bigint"),
)  # fmt: skip
"""Expressions around a time: the text before it, the text after it, and their types."""
COLLATIONS = ("UTF8_LCASE", "UNICODE", "UNICODE_CI", "UNICODE_CI_AI", "UTF8_BINARY_RTRIM")
RISKY = ("repeat", "space", "lpad", "rpad", "sequence", "array_repeat", "factorial")
"""Functions whose cost grows with a number among their arguments: such numbers stay literals."""


def family(kind: str) -> str:
    """Return the family of a type; types of a family can replace each other.

    >>> family("decimal(10,2)"), family("interval hour to second")
    ('decimal', 'interval day to second')
    """
    if kind.startswith("decimal"):
        return "decimal"
    if kind.startswith("string"):
        return "string"
    if kind.startswith("time("):
        return "time(6)"
    if kind in ("interval day", "interval hour", "interval minute", "interval second") or (
        kind.startswith("interval") and "second" in kind
    ):
        return "interval day to second"
    return kind


class Deck:
    """Things drawn in random order, each once before any of them is drawn again."""

    def __init__(self, random: Random, things: Sequence[str]) -> None:
        self._random, self._things, self._left = random, list(things), list[str]()

    def deal(self) -> str:
        if not self._left:
            self._left = self._random.sample(self._things, len(self._things))
        return self._left.pop()


class Expressions:
    """A source of random expressions over one stream's columns.

    Args:
        alias: the qualifier of the columns; empty for none.
    """

    def __init__(self, random: Random, corpus: "Corpus", layout: Layout, alias: str = "") -> None:
        self._random, self._corpus = random, corpus
        self._prefix = f"{written(alias)}." if alias else ""
        self._by_family: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for name, kind in layout.all_columns.items():
            self._by_family[family(kind)].append((name, kind))
        self._columns = [
            (name, kind) for columns in self._by_family.values() for name, kind in columns
        ]

    def column(self, kind: str = "") -> Tree | None:
        """Return a column, from the family of `kind` if it is set; None if there is none."""
        columns = self._by_family.get(family(kind), []) if kind else self._columns
        if not columns:
            return None
        name, column_kind = self._random.choice(columns)
        bare = name.isidentifier() and name.lower() not in RESERVED
        text = name if bare and self._random.random() < 0.9 else quoted(name)
        return leaf(f"{self._prefix}{text}", column_kind)

    def value(self, kind: str, depth: int) -> Tree:
        """Return an expression of about this type: a column, a literal or a call."""
        chance = self._random.random()
        if depth > 0 and chance < 0.25 and (call := self.call(kind, depth - 1)) is not None:
            return call
        if chance < 0.85 and (column := self.column(kind)) is not None:
            return column
        if family(kind) in NUMBERS and self._random.random() < 0.3:
            other = self.column(self._random.choice(NUMBERS))
            if other is not None:
                return other
        text = literal(self._random, kind)
        return leaf(text or f"CAST(NULL AS {kind})", kind)

    def call(self, kind: str = "", depth: int = 1) -> Tree | None:
        """Return a function call, with a result of type `kind` if set; None if there is none."""
        example = self._corpus.scalar(kind)
        return None if example is None else self.filled(example, depth)

    def filled(self, example: Example, depth: int, share: float = 0.7) -> Tree:
        """Return an example with some of its arguments replaced by columns and calls."""
        parts: list[str | Tree] = []
        for number, piece in enumerate(example.pieces):
            kind = example.kinds[number // 2] if number % 2 else ""
            risky = example.function in RISKY and family(kind) in NUMBERS
            if number % 2 == 0:
                parts.append(piece)
            elif kind and kind != "void" and not risky and self._random.random() < share:
                parts.append(self.value(kind, depth))
            else:
                parts.append(leaf(piece, kind))
        return Tree(tuple(parts), example.kind)

    def any(self, depth: int = 2) -> Tree:
        """Return an expression of any type, mostly a function call."""
        chance = self._random.random()
        if chance < 0.12 and (column := self.column()) is not None:
            return column
        if chance < 0.22:
            return self._cast(depth)
        if chance < 0.30:
            return self._case(depth)
        if chance < 0.34:
            return self._collated()
        if chance < 0.40:
            return self._arithmetic(depth)
        if chance < 0.46:
            return self.of_clock()
        call = self.call(depth=depth)
        assert call is not None
        return call

    def over_own_types(self, depth: int = 1) -> Tree:
        """Return a call with an argument of one of this stream's less common types."""
        rare = [kind for kind in self._by_family if kind in self._corpus.rare]
        if not rare:
            return self.any(depth)
        kind = self._random.choice(rare)
        if self._random.random() < 0.3:
            column = self.column(kind)
            assert column is not None
            return column
        example = self._corpus.taking(kind)
        return self.any(depth) if example is None else self.filled(example, depth, share=0.9)

    def operand(self, column: Tree, depth: int = 0) -> Tree:
        """Return an expression to compare a column with; rarely the column itself."""
        text = literal(self._random, column.kind) if self._random.random() < 0.6 else None
        if text is not None:
            return leaf(text, column.kind)
        other = self.value(column.kind, depth)
        return self.value(column.kind, depth) if other.text == column.text else other

    def condition(self, depth: int = 1) -> Tree:
        """Return a boolean expression."""
        chance, random = self._random.random(), self._random
        if chance < 0.2 and (call := self.call("boolean", depth)) is not None:
            return call
        if chance < 0.35:
            word = random.choice(["AND", "OR", "AND NOT"])
            pair = (self.condition(0), f" {word} ", self.condition(0))
            return Tree(("(", *pair, ")"), "boolean")
        column = self.column()
        assert column is not None
        kind = column.kind
        if chance < 0.45 or kind.startswith(("map", "variant", "void")):
            return Tree((column, random.choice([" IS NULL", " IS NOT NULL"])), "boolean")
        if chance < 0.55:
            values = [self.operand(column) for _ in range(3)]
            row = (column, " IN (", values[0], ", ", values[1], ", ", values[2], ")")
            return Tree(row, "boolean")
        if chance < 0.62:
            low, high = self.operand(column), self.operand(column)
            return Tree((column, " BETWEEN ", low, " AND ", high), "boolean")
        if chance < 0.68 and family(kind) == "string":
            pattern = random.choice(["'%a%'", "'_b%'", "'%\\\\%%'", "'a'"])
            return Tree((column, f" {random.choice(['LIKE', 'ILIKE', 'RLIKE'])} {pattern}"))
        operator = random.choice(["=", "<", ">", "<=", ">=", "<>", "<=>"])
        return Tree((column, f" {operator} ", self.operand(column, depth)), "boolean")

    def tame(self, kind: str) -> Tree | None:
        """Return an argument for an aggregate; sums of its floats neither overflow nor cancel."""
        if family(kind) in FLOATS:
            return leaf(f"{self._prefix}w", "double")
        return self.column(kind)

    def aggregate(self) -> Tree:
        """Return an aggregate over columns."""
        for _ in range(20):
            example = self._corpus.aggregate()
            pieces: list[str | Tree] = list(example.pieces)
            for number, kind in enumerate(example.kinds):
                argument = self.tame(kind)
                if argument is None:
                    break
                pieces[2 * number + 1] = argument
            else:
                return Tree(tuple(pieces), "aggregate")
        return leaf("count(*)", "bigint")

    def own_aggregate(self) -> Tree:
        """Return a common aggregate over any column."""
        random = self._random
        column = self.column()
        assert column is not None
        if "collate" in column.kind:  # of several equal texts, any may be the minimum
            return Tree((self._random.choice(["count(", "count(DISTINCT "]), column, ")"), "bigint")
        safe = family(column.kind) not in FLOATS
        chosen = random.choice([
            *("count({0})", "min({0})", "max({0})", "count(DISTINCT {0})", "count(*)"),
            "sort_array(collect_set({0}))", "sort_array(collect_list({0}))",
            *(("sum({0})", "avg({0})", "sum(DISTINCT {0})") if safe else ()),
            "count_if({0} IS NULL)", "max(struct({0}, id)).id", "count({0}) FILTER (WHERE id > 5)",
        ])  # fmt: skip
        before, marked, after = chosen.partition("{0}")
        return Tree((before, column, after), "aggregate") if marked else leaf(chosen, "bigint")

    def _cast(self, depth: int) -> Tree:
        kind = self._random.choice(list(CASTS))
        start = self._random.choice(["CAST(", "try_cast("])
        target = self._random.choice(CASTS[kind])
        return Tree((start, self.value(kind, depth), f" AS {target.upper()})"), target)

    def _case(self, depth: int) -> Tree:
        kind = self._random.choice(["int", "string", "double", "date", "decimal(10,2)"])
        parts: list[str | Tree] = ["CASE"]
        for _ in range(self._random.randint(1, 3)):
            parts += [" WHEN ", self.condition(0), " THEN ", self.value(kind, depth - 1)]
        if self._random.random() < 0.7:
            parts += [" ELSE ", self.value(kind, depth - 1)]
        return Tree((*parts, " END"), kind)

    def of_clock(self) -> Tree:
        """Return an expression that depends on the session's time zone."""
        kind = self._random.choice(("timestamp", "timestamp", "timestamp_ntz"))
        before, after, result = self._random.choice(CLOCK)
        time = self.column(kind) or leaf(f"{self._prefix}ts", "timestamp")
        return Tree((before, time, after), result)

    def _collated(self) -> Tree:
        first, second = self.value("string", 0), self.value("string", 0)
        collation = self._random.choice(COLLATIONS)
        operator = self._random.choice(["=", "<", ">", "<=>"])
        return Tree((first, f" COLLATE {collation} {operator} ", second), "boolean")

    def _arithmetic(self, depth: int) -> Tree:
        kind = self._random.choice(["int", "bigint", "double", "decimal(10,2)", "tinyint"])
        operator = self._random.choice(["+", "-", "*", "/", "%", "div"])
        first, second = self.value(kind, depth - 1), self.value(kind, 0)
        third = self.value(kind, 0)
        return Tree(("(", first, f" {operator} ", second, ") - ", third), kind)


class Corpus:
    """Spark's examples, drawn so that every function gets its turn."""

    def __init__(self, random: Random, examples: Sequence[Example]) -> None:
        self._random = random
        self._by_function: dict[str, list[Example]] = defaultdict(list)
        self._by_result: dict[str, list[Example]] = defaultdict(list)
        self._by_argument: dict[str, list[Example]] = defaultdict(list)
        aggregates: set[str] = set()
        for example in dict.fromkeys(examples):
            self._by_function[example.function].append(example)
            if example.kind == "?":
                aggregates.add(example.function)
                continue
            self._by_result[family(example.kind)].append(example)
            for kind in {family(kind) for kind in example.kinds}:
                self._by_argument[kind].append(example)
        self._aggregates = Deck(random, sorted(aggregates))
        self._scalars = Deck(random, sorted(set(self._by_function) - aggregates))
        self.rare = {
            *("time(6)", "interval day to second", "interval year to month", "variant", "string"),
            *("date", "int"),
        }

    def scalar(self, kind: str = "") -> Example | None:
        """Return an example of a scalar function, with a result of type `kind` if it is set."""
        if kind:
            examples = self._by_result.get(family(kind))
            return self._random.choice(examples) if examples else None
        return self._random.choice(self._by_function[self._scalars.deal()])

    def taking(self, kind: str) -> Example | None:
        """Return an example with an argument of this type."""
        examples = self._by_argument.get(family(kind))
        return self._random.choice(examples) if examples else None

    def aggregate(self) -> Example:
        """Return an example of an aggregate."""
        return self._random.choice(self._by_function[self._aggregates.deal()])
