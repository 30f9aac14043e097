"""Durations as SQL writes them."""

import pytest

from headgate.language.durations import LONGEST, microseconds, unreadable

S = 1_000_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10 seconds", 10 * S),
        ("1 Second", S),
        ("1 minute 30 seconds", 90 * S),
        ("INTERVAL '2' HOURS", 7200 * S),
        ("interval 2 hours", 7200 * S),
        ("INTERVAL '2 hours'", 7200 * S),
        ('"3" DAYS', 3 * 86400 * S),
        ("0.5 weeks", 302400 * S),
        ("1.5 milliseconds", 1500),
        ("7 microseconds", 7),
    ],
)
def test_durations(text: str, expected: int) -> None:
    assert microseconds(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "", "10", "seconds", "1 month", "-1 second", "1.5.2 seconds", "1 second 2", "0 seconds",
        "0.1 microseconds", "1e3 seconds", "ten seconds", f"{LONGEST} microseconds", "1 secondss",
    ],
)  # fmt: skip
def test_durations_that_cannot_be_read(text: str) -> None:
    assert microseconds(text) is None


@pytest.mark.parametrize(
    ("text", "reason", "meant"),
    [
        ("[RANGE 10]", "cannot be read", None),
        ("[RANGE 5 MINUTS]", "cannot be read: there is no unit MINUTS", "[RANGE 5 MINUTES]"),
        ("[RANGE 5 parsecs]", "cannot be read: there is no unit parsecs", None),
        ("[RANGE 2 YEARS]", "cannot be read: YEARS has no fixed length", None),
    ],
)
def test_a_unit_that_is_none_is_named_with_the_nearest(
    text: str, reason: str, meant: str | None
) -> None:
    assert unreadable(text) == (reason, meant)
