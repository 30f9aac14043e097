"""The row at which a query failed, for the error message."""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from headgate.errors import RowFailed
from headgate.model.window import HIDDEN
from headgate.spark.jvm.errors import cause_of, condition_of

MOST_OF_VALUE = 60
MOST_OF_ROW = 300
"""The most characters that a message shows of one value, and of all values together."""


@dataclass(frozen=True)
class FailingRow:
    """The row that a plan read last before it failed.

    Args:
        view: the relation that the row belongs to.
        number: the position of the row among the rows of the call.
        values: the values of the columns that the plan reads, shortened.
    """

    view: str
    number: int
    values: str

    @classmethod
    def of(cls, view: str, rows: pa.Table, number: int) -> "FailingRow":
        """Return the row with this number among the input rows of a call."""
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
    """Return the error of a call that failed on both lanes, with the failing row if it is certain.

    The job may stop at another row, but then with the same kind of error. If the errors differ, the
    driver lane failed for another reason, and its row proves nothing.

    Args:
        number: the number of the tuple in its stream, if known.
    """
    cause, condition = cause_of(in_driver), condition_of(in_driver)
    alike = condition == condition_of(by_job) and (condition or cause == cause_of(by_job))
    if row is None or not alike:
        return by_job
    return RowFailed(cause=cause, stream=stream, number=number, values=row.values)


def _text(scalar: Any) -> str:
    try:
        value = scalar.as_py()
    except (ValueError, OverflowError):  # a time beyond the years that Python supports
        return "…"
    text = "NULL" if value is None else repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= MOST_OF_VALUE else f"{text[:MOST_OF_VALUE]}…"
