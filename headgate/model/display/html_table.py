"""Results as small HTML tables, for notebooks. All text is escaped."""

from collections.abc import Sequence
from html import escape
from math import isfinite
from typing import Any

STYLE = "text-align:left;padding:2px 12px 2px 0"


def table_html(title: str, heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Return a table with a title.

    >>> table_html("a & b", ["x"], [[1.23456], [None]])[:18]
    '<b>a &amp; b</b><t'
    """
    head = "".join(f'<th style="{STYLE}">{escape(text)}</th>' for text in heads)
    body = "".join(
        "<tr>"
        + "".join(f'<td style="{STYLE}">{escape(cell(value))}</td>' for value in row)
        + "</tr>"
        for row in rows
    )
    return (
        f"<b>{escape(title)}</b><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def cell(value: Any) -> str:
    """Return a value as text; a number with four digits, a dash for one that is not known.

    >>> cell(0.123456), cell(1234567), cell(None), cell(float("nan"))
    ('0.1235', '1,234,567', '–', '–')
    """
    if value is None or (isinstance(value, float) and not isfinite(value)):
        return "–"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"
