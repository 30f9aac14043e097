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
LONGEST = 2**60
"""Microseconds that can be added to any time, and more tuples than there are."""


def microseconds(text: str) -> int | None:
    """Return a duration in microseconds; None where it cannot be read.

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


def unknown_unit(text: str) -> str | None:
    """Return a word that is no unit, with the nearest that is; None where all are.

    >>> unknown_unit("60 secnods")
    "'secnods'; did you mean 'seconds'?"
    """
    for word in _words(text):
        if word.isalpha() and word.removesuffix("s") not in MICROSECONDS:
            nearest = get_close_matches(word, [f"{unit}s" for unit in MICROSECONDS], n=1)
            return f"'{word}'" + (f"; did you mean '{nearest[0]}'?" if nearest else "")
    return None


def _words(text: str) -> list[str]:
    return text.lower().replace("interval", " ").replace("'", " ").replace('"', " ").split()
