"""The forest's sensors."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.errors import HeadgateError
from headgate.workloads.arrivals import Bursts
from headgate.workloads.testbeds.forest import SCHEMA, arrivals_of, sensor_readings


@given(
    seed=st.integers(0, 1000),
    first=st.integers(0, 10**9),
    count=st.integers(1, 50),
    cut=st.integers(0, 50),
)
def test_a_reading_depends_on_seed_and_position_and_not_on_who_asks(
    seed: int, first: int, count: int, cut: int
) -> None:
    times_s, cut = 1e9 + np.arange(count), min(cut, count)
    whole = sensor_readings(seed, first, times_s).to_pylist()
    front = sensor_readings(seed, first, times_s[:cut]).to_pylist()
    rest = sensor_readings(seed, first + cut, times_s[cut:]).to_pylist()
    assert front + rest == whole


def test_readings_are_in_range_and_use_all_of_it() -> None:
    rows = sensor_readings(1, 0, np.zeros(20_000)).to_pydict()
    assert len(set(rows["location"])) == 20
    assert {len(location) for location in rows["location"]} == {12}
    assert (min(rows["temperature"]), max(rows["temperature"])) == (0, 40)
    assert (min(rows["humidity"]), max(rows["humidity"])) == (0, 100)
    assert np.mean(rows["temperature"]) == pytest.approx(20, abs=0.5)
    assert np.mean(rows["humidity"]) == pytest.approx(50, abs=1)


def test_temperature_humidity_and_location_are_not_related() -> None:
    rows = sensor_readings(1, 0, np.zeros(20_000)).to_pydict()
    places = [int(location[-5:]) for location in rows["location"]]
    related = np.corrcoef([rows["temperature"], rows["humidity"], places])
    assert np.abs(related - np.eye(3)).max() < 0.03


def test_another_seed_gives_other_readings() -> None:
    one, other = (sensor_readings(seed, 0, np.zeros(100)).to_pydict() for seed in (1, 2))
    assert one["temperature"] != other["temperature"]


def test_columns_are_those_of_the_schema_and_time_is_kept_to_the_microsecond() -> None:
    batch = sensor_readings(0, 0, np.array([1.8e9 + 0.25]))
    assert batch.schema.names == [column.split()[0] for column in SCHEMA.split(", ")]
    assert batch.to_pylist()[0]["ts"].timestamp() == pytest.approx(1.8e9 + 0.25, abs=1e-6)


def test_the_options_of_a_stream_become_its_arrivals() -> None:
    options = {"rate_per_s": "1500", "burst_factor": "8", "burst_for_s": "3", "seed": "1"}
    assert arrivals_of(options) == Bursts(rate_per_s=1500, burst_factor=8, burst_for_s=3)


@pytest.mark.parametrize("options", [{}, {"burst_factor": "8"}, {"rate_per_s": "many"}])
def test_options_without_a_usable_rate_are_refused(options: dict[str, str]) -> None:
    with pytest.raises(HeadgateError, match="rate_per_s"):
        arrivals_of(options)
