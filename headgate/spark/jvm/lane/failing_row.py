"""The row at which a query fails, for the message of its error."""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from headgate.errors import RowFailed
from headgate.model.window import HIDDEN
from headgate.spark.jvm.errors import cause_of, condition_of

MOST_OF_VALUE = 60
MOST_OF_ROW = 300
"""Characters of a value, and of all values, that a message has."""


@dataclass(frozen=True)
class FailingRow:
    """The row that a plan read last before it failed.

    Args:
        view: the relation whose row it is.
        number: its place in the call.
        values: the columns that the plan reads, shortened.
    """

    view: str
    number: int
    values: str

    @classmethod
    def of(cls, view: str, rows: pa.Table, number: int) -> "FailingRow":
        """Return one of the rows that were handed over."""
        texts, length = list[str](), 0
        for name in rows.column_names:
            if name.startswith(HIDDEN):
                continue
            text = f"{name} = {_text(rows[name][number])}"
            length += len(text)
            if length > MOST_OF_ROW:
                texts.append("…")
                break
            texts.append(text)
        return cls(view, number, ", ".join(texts))


def blamed(
    in_driver: Exception, by_job: Exception, row: FailingRow | None, stream: str, number: int | None
) -> Exception:
    """Return the error of a call that failed on both lanes: with its row, if that is certain.

    A job may stop at another row, but at the same kind of error. If it does not, the driver lane
    has failed for a reason of its own, and its row says nothing.

    Args:
        number: the number of the tuple in its stream, where that is known.
    """
    cause, condition = cause_of(in_driver), condition_of(in_driver)
    alike = condition == condition_of(by_job) and (condition or cause == cause_of(by_job))
    if row is None or not alike:
        return by_job
    return RowFailed(cause=cause, stream=stream, number=number, values=row.values)


def _text(scalar: Any) -> str:
    try:
        value = scalar.as_py()
    except (ValueError, OverflowError):  # a time beyond the years of Python
        return "…"
    text = "NULL" if value is None else repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= MOST_OF_VALUE else f"{text[:MOST_OF_VALUE]}…"
