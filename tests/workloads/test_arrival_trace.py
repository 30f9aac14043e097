"""Recorded arrivals."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate.errors import ConfigRefused
from headgate.workloads.arrival_trace import recorded

REAL = Path(__file__).parents[2] / ".." / "shared" / "data"


def trace(folder: Path, **columns: Any) -> Path:
    path = folder / "trace.parquet"
    pq.write_table(pa.table(columns), path)
    return path


def test_times_count_from_the_first_arrival(tmp_path: Path) -> None:
    path = trace(tmp_path, ts=[100.5, 101.0, 103.5])
    assert recorded(path).tolist() == [0.0, 0.5, 3.0]


def test_a_trace_can_be_replayed_faster_and_cut(tmp_path: Path) -> None:
    path = trace(tmp_path, ts=[0.0, 1.0, 2.0, 3.0])
    assert recorded(str(path), scale=0.01, tuples=3) == pytest.approx([0.0, 0.01, 0.02])


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_timestamps_become_seconds_to_the_last_digit(tmp_path: Path, unit: str) -> None:
    stamps = np.array(["2026-01-01T00:00:00", "2026-01-01T00:00:02"], dtype=f"datetime64[{unit}]")
    assert recorded(trace(tmp_path, seen=stamps)).tolist() == [0.0, 2.0]


def test_nanoseconds_of_a_long_epoch_are_not_lost(tmp_path: Path) -> None:
    stamps = np.array([1_790_000_000_000_000_000, 1_790_000_000_000_000_001], "datetime64[ns]")
    assert recorded(trace(tmp_path, seen=stamps))[1] == pytest.approx(1e-9)


@pytest.mark.parametrize(
    ("columns", "chosen"),
    [
        ({"seen": [1, 2]}, "seen"),
        ({"seen": [1, 2], "host": ["a", "b"]}, "seen"),
        ({"bytes": [9, 8], "ts": [1, 2]}, "ts"),
        ({"bytes": [9, 8], "Timestamp": [1, 2]}, "Timestamp"),
        ({"pickup_ts": [9, 8], "ts": [1, 2]}, "ts"),
        ({"bytes": [9, 8], "_arrived_at_s": [1, 2]}, "_arrived_at_s"),
        ({"bytes": [9, 8], "arrival_s": [1, 2]}, "arrival_s"),
    ],
)
def test_the_column_of_times_is_found(
    tmp_path: Path, columns: dict[str, list[Any]], chosen: str
) -> None:
    path = trace(tmp_path, **columns)
    assert (recorded(path) == recorded(path, chosen)).all()


def test_where_several_could_be_it_the_column_must_be_named(tmp_path: Path) -> None:
    path = trace(tmp_path, seen=[1, 2], sent=[1, 2], host=["a", "b"])
    with pytest.raises(ConfigRefused, match=r"column must be named.*seen, sent"):
        recorded(path)
    assert recorded(path, "sent").tolist() == [0.0, 1.0]


def test_a_column_that_is_not_there_is_refused_with_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(ConfigRefused, match="column is 'when', but must be one of ts, bytes"):
        recorded(trace(tmp_path, ts=[1.0], bytes=[1]), "when")


def test_a_column_of_words_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigRefused, match="'host', but must be of numbers or timestamps"):
        recorded(trace(tmp_path, ts=[1.0], host=["a"]), "host")
    with pytest.raises(ConfigRefused, match=r"column must be named.*none"):
        recorded(trace(tmp_path, host=["a"]))


def test_an_empty_trace_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigRefused, match="the trace is empty"):
        recorded(trace(tmp_path, ts=pa.array([], pa.float64())))


def test_a_trace_out_of_order_is_refused_with_the_row(tmp_path: Path) -> None:
    with pytest.raises(ConfigRefused, match="ascending order of time: row 2 is before row 1"):
        recorded(trace(tmp_path, ts=[1.0, 3.0, 2.0, 4.0]))


@pytest.mark.parametrize("times", [[1.0, None, 2.0], [1.0, float("nan")], [1.0, float("inf")]])
def test_a_row_without_a_time_is_refused(tmp_path: Path, times: list[float | None]) -> None:
    with pytest.raises(ConfigRefused, match="every row"):
        recorded(trace(tmp_path, ts=times))


def test_a_file_that_is_no_parquet_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text("ts\n1\n2\n")
    with pytest.raises(ConfigRefused, match="a Parquet file: it cannot be read as one"):
        recorded(path)
    with pytest.raises(ConfigRefused, match="a Parquet file: it cannot be read as one"):
        recorded(tmp_path)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigRefused, match="a Parquet file: there is no such file"):
        recorded(tmp_path / "nowhere.parquet")


@pytest.mark.parametrize(("key", "value"), [("scale", 0.0), ("scale", -1.0), ("tuples", 0)])
def test_a_setting_that_cannot_be_is_refused(tmp_path: Path, key: str, value: Any) -> None:
    with pytest.raises(ConfigRefused, match=f"recorded: {key} is"):
        recorded(trace(tmp_path, ts=[1.0]), **{key: value})


@pytest.mark.parametrize(
    ("name", "tuples", "rate_per_s"),
    [("bc-paug89-prefix100k", 100_001, 396.7), ("dec-pkt-1-udp", 829_758, 230.5)],
)
def test_real_traces_have_the_rates_that_are_known_of_them(
    name: str, tuples: int, rate_per_s: float
) -> None:
    path = REAL / f"{name}.parquet"
    if not path.exists():
        pytest.skip("the trace is not here")
    times_s = recorded(path)
    assert len(times_s) == tuples
    assert tuples / times_s[-1] == pytest.approx(rate_per_s, rel=1e-3)
