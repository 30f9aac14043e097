"""What a setting must be, and the refusal where it is not: key, value, what was expected."""

from math import inf
from operator import index

from headgate.errors import ConfigRefused


def demand(fulfilled: bool, of: str, key: str, value: object, expected: str) -> None:
    """Refuses a value unless a demand is fulfilled.

    >>> demand(False, "poisson", "rate_per_s", -1.0, "above 0 and finite")
    Traceback (most recent call last):
    headgate.errors.ConfigRefused: poisson: rate_per_s is -1.0, but must be above 0 and finite.
    """
    if not fulfilled:
        raise ConfigRefused(path=of, key=key, value=value, expected=expected)


def above_zero(of: str, **values: float) -> None:
    """Refuses values that are zero, negative, endless or no number."""
    for key, value in values.items():
        demand(0 < value < inf, of, key, value, "above 0 and finite")


def whole(of: str, *, least: int = 1, **counts: int) -> None:
    """Refuses counts that are not whole or below the least."""
    for key, count in counts.items():
        try:
            fulfilled = index(count) >= least
        except TypeError:
            fulfilled = False
        demand(fulfilled, of, key, count, f"a whole number, {least} or more")


def between(of: str, low: float, high: float, **values: float) -> None:
    """Refuses values outside [low, high]."""
    for key, value in values.items():
        demand(low <= value <= high, of, key, value, f"between {low:g} and {high:g}")
