"""The streams of the differential test: their names, columns and types."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal


@dataclass(frozen=True)
class Layout:
    """A stream's columns after `id` and `ts`, and which values they may hold.

    Args:
        pools: the values of columns that have special ones, as SQL literals.
        extremes: whether values at the edges of their types are drawn, too.
        source: how tuples reach Headgate: Parquet files written by `arrow` or `spark`, lines of
            `csv` or `json`, or `python` rows.
        rows: the tuples, if they are not drawn: seconds after the clock change, and the values.
        base: the stream that a view reads.
        computed: the columns of a view as SQL over the columns of its base.
        period: a view leaves out one tuple of its base in so many.
    """

    name: str
    columns: Mapping[str, str]
    pools: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    extremes: bool = False
    source: Literal["arrow", "spark", "csv", "json", "python"] = "arrow"
    rows: tuple[tuple[Decimal | None, tuple[str, ...]], ...] = ()
    base: str = ""
    computed: Mapping[str, str] = field(default_factory=dict)
    period: int = 0

    @property
    def all_columns(self) -> dict[str, str]:
        """The columns with `id` and `ts`, which every stream has."""
        return {"id": "bigint", "ts": "timestamp", **self.columns}

    @property
    def ddl(self) -> str:
        """The schema as Spark's DDL."""
        return ", ".join(f"{quoted(name)} {kind}" for name, kind in self.all_columns.items())

    def view_over(self, base: str) -> str:
        """Return the text of a view over its base, or over a relation in place of its base."""
        items = "".join(f", {text} AS {quoted(name)}" for name, text in self.computed.items())
        return f"SELECT id, ts{items} FROM {base} WHERE id % {self.period} <> 1"

    def keeps(self, number: int) -> bool:
        """Return True if the view contains the tuple of its base with this number."""
        return number % self.period != 1


def quoted(name: str) -> str:
    """Return a name between backticks.

    >>> quoted("a`b")
    '`a``b`'
    """
    return "`" + name.replace("`", "``") + "`"


EVERYTHING = {
    "k": "string", "g": "int", "w": "double", "b": "boolean", "i8": "tinyint", "i16": "smallint",
    "i": "int", "l": "bigint", "f": "float", "d": "double", "n1": "decimal(4,1)",
    "n": "decimal(10,2)", "m": "decimal(38,18)", "big": "decimal(38,0)", "s": "string",
    "x": "binary", "dt": "date", "t": "timestamp", "nt": "timestamp_ntz", "ai": "array<int>",
    "sa": "array<string>", "da": "array<double>", "mp": "map<string,int>",
    "st": "struct<a:int,b:string>", "sta": "array<struct<a:int,b:string>>", "js": "string",
    "cs": "string", "url": "string", "num": "string", "day": "string",
}  # fmt: skip

POOLS = {
    "k": ("'a'", "'b'", "'c'"),
    "g": ("0", "1", "2"),
    "w": ("1.5D", "-2.25D", "10D", "0.125D", "33.3D"),
    "js": ('\'{"a": 1, "b": "x"}\'', "'{\"a\": 2}'", "'{}'", "'[1, 2]'"),
    "cs": ("'1,x'", "'2,\"y,z\"'", "'3;w'", "'4,'"),
    "url": ("'http://a.org/p?q=1&r=b%20c#f'", "'a b+c'", "'a%2Bb'"),
    "num": ("'1'", "'2'", "'-3'", "'10'"),
    "day": ("'2024-03-31'", "'2024-10-27 02:30:00'", "'2024-03-31 02:30:00'"),
}

RESERVED = {"true", "null", "select", "from", "end"}


def written(name: str) -> str:
    """Return a name as people write it: between backticks only if it needs them.

    >>> written("k"), written("null")
    ('k', '`null`')
    """
    return name if name.isidentifier() and name.lower() not in RESERVED else quoted(name)


_FEW = {"k": "string", "v": "int", "w": "double"}

LAYOUTS = {
    layout.name: layout
    for layout in (
        Layout("plain", EVERYTHING, POOLS),
        Layout("wild", EVERYTHING, {"k": POOLS["k"], "w": POOLS["w"]}, extremes=True),
        Layout("window", {**_FEW, "window": "int", "start": "int", "s": "string"}, POOLS),
        Layout(
            "date",
            {
                **_FEW, "date": "date", "true": "int", "null": "string", "select": "int",
                "1a": "int", "a.b": "bigint", "from": "string", "count": "int", "end": "int",
                "a`b": "int", "Ä b": "string", "timestamp": "timestamp",
            },
            POOLS,
        ),
        Layout(
            "collated",
            {
                **_FEW, "ci": "string collate UTF8_LCASE", "ai": "string collate UNICODE_CI_AI",
                "rt": "string collate UTF8_BINARY_RTRIM",
            },
            {
                **POOLS, "ci": ("'a'", "'A'", "'b'", "'B'", "'ß'"), "ai": ("'e'", "'É'", "'f'"),
                "rt": ("'a'", "'a  '", "'b '", "''"),
            },
        ),
        Layout("times", {**_FEW, "t": "time(6)", "t0": "time(6)"}, POOLS, True, "spark"),
        Layout("spans", {**_FEW, "sp": "interval day to second"}, POOLS, False, "spark"),
        Layout("months", {**_FEW, "mo": "interval year to month"}, POOLS, False, "spark"),
        Layout("variants", {**_FEW, "va": "variant"}, POOLS, True, "spark"),
        Layout("voids", {**_FEW, "nothing": "void", "other": "int"}, POOLS, False, "python"),
        Layout(
            "parsed",
            {"k": "string", "w": "double", "v": "int", "sa": "array<string>", "t": "timestamp",
             "js": "struct<a:int,b:string>"},
            base="plain", period=3,
            computed={"k": "k", "w": "w", "v": "length(s)", "sa": "sa", "t": "t",
                      "js": "from_json(js, 'a INT, b STRING')"},
        ),
        Layout(
            "again",
            {"k": "string", "w": "double", "v": "int", "js": "int"},
            base="parsed", period=5,
            computed={"k": "upper(k)", "w": "w", "v": "v + 1", "js": "js.a"},
        ),
    )
}  # fmt: skip
