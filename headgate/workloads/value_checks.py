"""Checks of settings: a bad value is refused with its key, the value and what is expected."""

from math import inf
from operator import index

from headgate.errors import ConfigRefused


def demand(fulfilled: bool, subject: str, key: str, value: object, expected: str) -> None:
    """Raise ConfigRefused unless a condition on a value is fulfilled.

    Args:
        subject: what the setting belongs to; the error begins with it.

    >>> demand(False, "poisson", "rate_per_s", -1.0, "above 0 and finite")
    Traceback (most recent call last):
    headgate.errors.ConfigRefused: poisson: rate_per_s is -1.0, but must be above 0 and finite.
    """
    if not fulfilled:
        raise ConfigRefused(path=subject, key=key, value=value, expected=expected)


def above_zero(subject: str, **values: float) -> None:
    """Raise ConfigRefused for a value that is zero, negative, infinite or not a number."""
    for key, value in values.items():
        demand(0 < value < inf, subject, key, value, "above 0 and finite")


def whole(subject: str, *, least: int = 1, **counts: int) -> None:
    """Raise ConfigRefused for a count that is not a whole number, or is below `least`."""
    for key, count in counts.items():
        try:
            fulfilled = index(count) >= least
        except TypeError:
            fulfilled = False
        demand(fulfilled, subject, key, count, f"a whole number, {least} or more")


def between(subject: str, low: float, high: float, **values: float) -> None:
    """Raise ConfigRefused for a value outside [low, high]."""
    for key, value in values.items():
        demand(low <= value <= high, subject, key, value, f"between {low:g} and {high:g}")
