"""Durations as SQL writes them: `90 seconds`, `INTERVAL '0.5' HOURS`, `1 minute 30 seconds`."""

import re
from difflib import get_close_matches

MICROSECONDS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
_UNITS = (*MICROSECONDS, *(f"{unit}s" for unit in MICROSECONDS))
_CALENDAR = ("month", "months", "quarter", "quarters", "year", "years")
_UNIT = re.compile(r"\d['\"]?\s*([A-Za-z]+)")

LONGEST = 2**60
"""A limit on durations in microseconds, which can be added to any time, and on tuple counts."""


def microseconds(text: str) -> int | None:
    """Return a duration in microseconds; None if it cannot be read.

    >>> microseconds("1 minute 30 seconds"), microseconds("INTERVAL '0.5' HOURS")
    (90000000, 1800000000)
    """
    words = _words(text)
    if not words or len(words) % 2:
        return None
    total = 0
    for number, unit in zip(words[::2], words[1::2], strict=True):
        scale = MICROSECONDS.get(unit.removesuffix("s"))
        if scale is None or not re.fullmatch(r"\d+(\.\d+)?", number):
            return None
        total += round(float(number) * scale)
    return total if 0 < total < LONGEST else None


def unreadable(text: str) -> tuple[str, str | None]:
    """Return why a text with durations cannot be read and, for a misspelled unit, a correction.

    >>> unreadable("[RANGE 60 SECNODS]")
    ('cannot be read: there is no unit SECNODS', '[RANGE 60 SECONDS]')
    >>> unreadable("[RANGE 1 MONTH]")
    ('cannot be read: MONTH has no fixed length', None)
    """
    units = _UNIT.findall(text)
    unknown = [unit for unit in units if unit.lower() not in (*_UNITS, *_CALENDAR, "slide")]
    if not unknown:
        calendar = [unit for unit in units if unit.lower() in _CALENDAR]
        return "cannot be read" + (f": {calendar[0]} has no fixed length" if calendar else ""), None
    corrected = text
    for unit in unknown:
        matches = get_close_matches(unit.lower(), _UNITS, n=1, cutoff=0.6)
        if not matches:
            return f"cannot be read: there is no unit {unknown[0]}", None
        spelling = matches[0].upper() if unit.isupper() else matches[0]
        corrected = re.sub(rf"\b{unit}\b", spelling, corrected)
    return f"cannot be read: there is no unit {unknown[0]}", corrected


def _words(text: str) -> list[str]:
    return text.lower().replace("interval", " ").replace("'", " ").replace('"', " ").split()
