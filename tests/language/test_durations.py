"""Durations as SQL writes them."""

import pytest

from headgate.language.durations import LONGEST, microseconds, unknown_unit

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
    ("text", "expected"),
    [
        ("10 seconds", None),
        ("", None),
        ("10", None),
        ("5 minuts", "'minuts'; did you mean 'minutes'?"),
        ("1 hour 5 secs", "'secs'"),
        ("5 parsecs", "'parsecs'"),
    ],
)
def test_a_unit_that_is_none_is_named_with_the_nearest(text: str, expected: str | None) -> None:
    found = unknown_unit(text)
    assert found == expected or (expected is not None and str(found).startswith(expected))
