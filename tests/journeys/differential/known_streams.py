"""Streams with chosen tuples, for texts that were once answered wrongly."""

from decimal import Decimal

from differential.columns import LAYOUTS, Layout

_SMALLEST, _GREATEST = "-9223372036854775808L", "9223372036854775807L"


def _rows(*rows: tuple[str | None, str]) -> tuple[tuple[Decimal | None, tuple[str, ...]], ...]:
    """Return tuples: seconds after the clock change, and SQL values that `|` separates."""
    return tuple(
        (
            None if seconds is None else Decimal(seconds),
            tuple(value.strip() for value in values.split("|")),
        )
        for seconds, values in rows
    )


FACTS = Layout(
    "facts",
    {
        "k": "string", "a": "int", "b": "int", "l": "bigint", "d": "double", "e": "double",
        "f": "double", "ai": "array<int>", "bi": "array<int>", "mp": "map<string,int>",
        "cs": "string", "js": "string", "url": "string",
    },
    rows=_rows(
        ("0", f"'a'|1|7|{_SMALLEST}|0.1D|0.2D|0.3D|array(5, 1, 3)|array(1, 2, 9)|map('x', 1)"
              "|'1,x;y'|\"{'a': 1}\"|'a b+c%20d'"),
        ("1", "'b'|2|5|5L|1e308D|1e308D|-1e308D|array(2)|array(4)|map('y', 2, 'x', 3)"
              "|'2;z'|'{\"a\": 2}'|'x%2By'"),
        ("2", "'a'|3|3|-5L|-0.0D|0.0D|double('NaN')|array(4, NULL)|array(1, 1)|map('z', NULL)"
              "|'3,\"q;r\"'|'{\"a\": 3, \"b\": [1]}'|'plain'"),
        ("3.5", "'c'|4|1|7L|0.7D|0.1D|0.3D|array()|array()|map()|'4'|'{}'|''"),
        ("4.25", "NULL|NULL|2|NULL|NULL|1D|2D|NULL|NULL|NULL|NULL|NULL|NULL"),
        ("9", "'b'|5|8|-7L|3D|4D|5D|array(9, 8, 7)|array(3, 2, 1)|map('x', 5)|'5,u'"
              "|'{\"a\":5}'|'%41'"),
        ("20", "'a'|6|9|0L|1D|1D|1D|array(1, 2)|array(2, 1)|map('x', 6)|'6,v'"
               "|'{\"a\": 6}'|'q=1&r'"),
        ("40", f"'z'|7|7|{_GREATEST}|1D|1D|1D|array(1)|array(1)|map('q', 7)|'7,w'|'{{}}'|'end'"),
    ),
)  # fmt: skip

NAMED = Layout(
    "named",
    {
        "true": "int", "null": "string", "1": "int", "1a": "int", "select": "int", "window": "int",
        "a.b": "int", "from": "string", "end": "int", "date": "date", "current_date": "int",
        "a`b": "int", "_x": "int",
    },
    rows=_rows(
        ("0", "0|'p'|11|1|2|3|4|'f'|5|DATE'2024-01-01'|6|7|8"),
        ("1", "1|NULL|12|2|3|4|5|'g'|6|DATE'2024-01-02'|7|8|9"),
        ("2", "NULL|'q'|13|3|4|5|6|'h'|7|NULL|8|9|10"),
        ("12", "0|'q'|11|4|5|6|7|'f'|8|DATE'2024-01-04'|9|10|11"),
        ("30", "1|'r'|15|5|6|7|8|'g'|9|DATE'2024-01-05'|10|11|12"),
    ),
)  # fmt: skip

CASES = Layout(
    "letters",
    {
        "ci": "string collate UTF8_LCASE", "ai": "string collate UNICODE_CI_AI",
        "rt": "string collate UTF8_BINARY_RTRIM", "bin": "string", "v": "int",
    },
    rows=_rows(
        ("0", "'b'|'e'|'a'|'b'|1"),
        ("1", "'B'|'É'|'a  '|'B'|2"),
        ("2", "'a'|'E'|'b'|'a'|3"),
        ("3", "'C'|'f'|'b  '|'C'|4"),
        ("4", "'c'|'F'|''|'c'|5"),
        ("5", "NULL|NULL|NULL|NULL|6"),
        ("30", "'Z'|'z'|'z'|'Z'|7"),
    ),
)  # fmt: skip

INSTANTS = Layout(
    "instants",
    {"k": "string", "t": "timestamp"},
    rows=_rows(
        ("0.000000", "'a'|TIMESTAMP'2024-03-31 00:59:59.999999Z'"),
        ("0.499999", "'a'|TIMESTAMP'2024-03-31 01:00:00Z'"),
        ("0.500000", "'a'|TIMESTAMP'2024-10-27 00:59:59.999999Z'"),
        ("0.500001", "'a'|TIMESTAMP'2024-10-27 01:00:00Z'"),
        ("0.999999", "'a'|TIMESTAMP'2024-10-27 00:30:00.000001Z'"),
        ("1.000001", "'a'|TIMESTAMP'1969-12-31 23:59:59.999999Z'"),
        ("1.500001", "'b'|TIMESTAMP'2024-03-10 07:00:00Z'"),
        ("2.000001", "'b'|TIMESTAMP'2024-11-03 05:59:59.5Z'"),
        ("2.500002", "'b'|TIMESTAMP'2024-11-03 06:30:00Z'"),
        ("20", "'z'|NULL"),
    ),
)

LINES = tuple(
    Layout(
        f"{source}_lines", {"k": "string", "v": "int"}, source=source,
        rows=_rows(
            ("0.000001", "'a'|1"), ("0.123456", "'b'|2"), ("1.999999", "'c'|3"), ("20", "'z'|4")
        ),
    )
    for source in ("csv", "json")
)  # fmt: skip

KNOWN_LAYOUTS = LAYOUTS | {
    layout.name: layout for layout in (FACTS, NAMED, CASES, INSTANTS, *LINES)
}
