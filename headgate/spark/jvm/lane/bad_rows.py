"""The rows of a failed call at which an expression fails, found by running parts of the call."""

from collections.abc import Callable
from dataclasses import dataclass

from headgate.spark.jvm.errors import is_of_row

MOST_AT_ONCE = 2_000
"""The most rows that run at once while the failing row is known: a failure repeats those after it.
"""


@dataclass(frozen=True)
class Failure:
    """The error of some rows, with the number of the failing row among them if it is known."""

    error: Exception
    row: int | None = None


def bad_rows(
    count: int, failure: Failure, run: Callable[[int, int], Failure | None]
) -> dict[int, Exception]:
    """Return the numbers of the rows that fail by themselves, each with its error.

    Where the lane knows the failing row, the next run begins behind it. Otherwise runs halve the
    rows until a single one fails. Rows that only fail together are not among the answer.

    Args:
        count: the number of rows.
        failure: that of all rows.
        run: runs the rows first, ..., end − 1, and returns how they failed.

    Raises:
        Exception: a run failed with an error that no row can have caused.
    """
    bad: dict[int, Exception] = {}
    parts: list[tuple[int, int, Failure | None]] = [(0, count, failure)]
    while parts:
        first, end, last_failure = parts.pop()
        if first == end:
            continue
        failed = last_failure or run(first, end)
        if failed is None:
            continue
        if not is_of_row(failed.error):
            raise failed.error
        if failed.row is not None:
            row = first + failed.row
            bad[row] = failed.error
            later = range(row + 1, end, MOST_AT_ONCE)
            parts += [(start, min(start + MOST_AT_ONCE, end), None) for start in reversed(later)]
        elif end - first == 1:
            bad[first] = failed.error
        else:
            middle = (first + end) // 2
            parts += [(middle, end, None), (first, middle, None)]
    return bad
