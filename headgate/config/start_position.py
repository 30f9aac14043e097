"""The place in the log at which a query begins, as users write it."""

from datetime import UTC, datetime
from math import inf

from headgate.errors import QueryRefused

EXPECTED = "oldest, now, or a time such as 2026-03-01T09:30:00+01:00 (without an offset: in UTC)"


def since(text: str) -> float:
    """Return the instant from which on a query takes trains.

    Raises:
        ValueError: the text is not `oldest`, `now`, or a time.

    >>> since("oldest"), since("now"), since("1970-01-01T00:01")
    (-inf, inf, 60.0)
    """
    if text in ("oldest", "now"):
        return -inf if text == "oldest" else inf
    try:
        instant = datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError(EXPECTED) from error
    return (instant if instant.tzinfo else instant.replace(tzinfo=UTC)).timestamp()


def since_of(query: str, text: str) -> float:
    """Return the instant from which on a query takes trains.

    Raises:
        QueryRefused: as `since`.
    """
    try:
        return since(text)
    except ValueError as error:
        raise QueryRefused(
            query=query, clause="from", reason=f"is {text!r}", fix=f"write {EXPECTED}"
        ) from error
