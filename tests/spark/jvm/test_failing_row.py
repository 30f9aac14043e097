"""What a message says about the row at which a query failed."""

import pyarrow as pa

from headgate.model.window import WINDOW
from headgate.spark.jvm.lane.failing_row import MOST_OF_ROW, MOST_OF_VALUE, FailingRow


def values_of(**columns: pa.Array) -> str:
    return FailingRow.of("s", pa.table(columns), 0).values


def test_a_row_has_the_columns_that_users_know() -> None:
    table = {"n": pa.array([1]), "s": pa.array(["it's"]), "x": pa.array([None], pa.int32())}
    assert values_of(**table, **{WINDOW: pa.array([5])}) == 'n = 1, s = "it\'s", x = NULL'


def test_values_and_rows_are_shortened() -> None:
    text = values_of(body=pa.array(["a" * 1_000_000]), numbers=pa.array([list(range(10_000))]))
    assert text.startswith("body = 'aaa")
    assert len(text) < 2 * MOST_OF_VALUE + 40
    many = values_of(**{f"column_{n}": pa.array([n]) for n in range(1000)})
    assert many.endswith(", …")
    assert len(many) < 2 * MOST_OF_ROW


def test_a_time_that_python_does_not_know_fails_nothing() -> None:
    assert values_of(ts=pa.array([2**62], pa.timestamp("us", "UTC")), n=pa.array([1])) == (
        "ts = …, n = 1"
    )
