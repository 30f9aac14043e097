"""Numbers as short text, for charts and verdicts."""

from math import isfinite, isnan


def number_text(value: float, digits: int = 4) -> str:
    """Return a short text of a number.

    >>> number_text(0.25), number_text(12_000.0), number_text(2e6), number_text(3e-5)
    ('0.25', '12 000', '2e6', '3e-5')
    >>> number_text(float("nan")), number_text(float("inf"))
    ('none', '∞')
    """
    if not isfinite(value):
        return "none" if isnan(value) else "∞"
    if value == 0:
        return "0"
    if 1e-3 <= abs(value) < 1e5:
        return f"{float(f'{value:.{digits}g}'):,.6g}".replace(",", " ")
    mantissa, _, power = f"{value:.2e}".partition("e")
    return f"{float(mantissa):g}e{int(power)}"
