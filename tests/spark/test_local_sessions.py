"""Sessions in the driver are those that rows make one after the other."""

from collections import defaultdict

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.spark.local_rows import TooMuch
from headgate.spark.local_sessions import with_sessions

US = pa.timestamp("us", tz="UTC")
KIND = pa.struct([("start", US), ("end", US)])


def table(keys: list[str | None], starts: list[int], ends: list[int]) -> pa.Table:
    arrays = [pa.array(each, pa.int64()).cast(US) for each in (starts, ends)]
    sessions = pa.StructArray.from_arrays(arrays, fields=list(KIND))
    rows = pa.table({"c0": pa.array(keys, pa.string()), "c1": sessions, "c2": pa.array(starts)})
    return pa.concat_tables([rows.slice(0, 2), rows.slice(2)])


@given(
    rows=st.lists(st.tuples(st.sampled_from([None, "a", "b"]), st.integers(-40, 40))),
    gap=st.integers(1, 9),
)
def test_sessions_of_rows(rows: list[tuple[str | None, int]], gap: int) -> None:
    keys, times = [key for key, _ in rows], [time for _, time in rows]
    made = with_sessions(table(keys, times, [time + gap for time in times]), 2, 1)
    sessions: dict[str | None, list[list[int]]] = defaultdict(list)
    for key, time in sorted(rows, key=lambda row: row[1]):
        if sessions[key] and time <= sessions[key][-1][1]:
            sessions[key][-1][1] = time + gap
        else:
            sessions[key].append([time, time + gap])
    expected = [
        next(each for each in sessions[key] if each[0] <= time <= each[1]) for key, time in rows
    ]
    assert made.column("c1").type == KIND
    flat = made.column("c1").combine_chunks()
    found = np.column_stack([flat.field(n).cast(pa.int64()).to_numpy() for n in (0, 1)])
    assert found.tolist() == expected
    assert made.column("c2").to_pylist() == times


def test_sessions_with_several_gaps_are_left_to_a_job() -> None:
    with pytest.raises(TooMuch, match="several gaps"):
        with_sessions(table(["a", "a"], [1, 2], [4, 9]), 2, 1)
