"""The streams of Nexmark."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.errors import HeadgateError
from headgate.workloads.testbeds.nexmark import HOT_CHANNELS, SCHEMAS, Nexmark


@given(
    seed=st.integers(0, 1000),
    first=st.integers(0, 10**9),
    count=st.integers(1, 120),
    cut=st.integers(0, 120),
)
def test_an_event_depends_on_seed_and_position_and_not_on_who_asks(
    seed: int, first: int, count: int, cut: int
) -> None:
    site, cut = Nexmark(seed=seed), min(cut, count)
    whole, front = site.events(first, count), site.events(first, cut)
    rest = site.events(first + cut, count - cut)
    for stream in SCHEMAS:
        assert pa.concat_tables([front[stream], rest[stream]]) == whole[stream]


def test_streams_have_the_columns_and_the_proportions_of_the_model() -> None:
    events = Nexmark().events(0, 5000)
    assert {name: table.num_rows for name, table in events.items()} == {
        "person": 100, "auction": 300, "bid": 4600
    }  # fmt: skip
    for name, table in events.items():
        assert table.column_names == [column.split()[0] for column in SCHEMAS[name].split(",")]
        assert sum(column.null_count for column in table.columns) == 0


def test_whom_and_what_an_event_names_has_come_before() -> None:
    events = Nexmark().events(0, 5000)
    persons, auctions, bids = events["person"], events["auction"], events["bid"]
    assert persons["id"].to_pylist() == list(range(1000, 1100))
    assert auctions["id"].to_pylist() == list(range(1000, 1300))
    assert pc.all(pc.is_in(bids["auction"], auctions["id"])).as_py()
    assert pc.all(pc.is_in(bids["bidder"], persons["id"])).as_py()
    assert pc.all(pc.is_in(auctions["seller"], persons["id"])).as_py()


def test_time_goes_on_and_some_events_are_behind_it() -> None:
    site = Nexmark(rate_per_s=10, start_s=1000, behind_s=3)
    times = site.events(0, 5000)["bid"]["dateTime"].cast(pa.int64()).to_numpy()
    tops = [max(times[: n + 1]) for n in range(len(times))]
    behind = [top - time for top, time in zip(tops, times, strict=True)]
    assert times[0] == 1000 * 10**6 + 4 * 10**5
    assert max(times) == 1000 * 10**6 + 4999 * 10**5
    assert max(behind) < 3 * 10**6
    assert sum(delay_us > 0 for delay_us in behind) == pytest.approx(0.1 * len(times), rel=0.2)


def test_an_auction_is_open_for_a_while_and_no_longer_than_it_says() -> None:
    site = Nexmark(rate_per_s=50)
    auctions = site.events(0, 5000)["auction"]
    opened, closed = (
        auctions[name].cast(pa.int64()).to_numpy() for name in ("dateTime", "expires")
    )
    assert min(closed - opened) > 0
    assert max(closed - opened) <= site.longest_s * 1e6


def test_values_are_those_that_queries_ask_for() -> None:
    events = Nexmark().events(0, 10_000)
    bids, auctions = events["bid"], events["auction"]
    assert set(auctions["category"].to_pylist()) == set(range(10, 15))
    assert 100 <= pc.min(bids["price"]).as_py() < pc.max(bids["price"]).as_py() <= 10**8
    hot = pc.is_in(bids["channel"], pa.array(HOT_CHANNELS))
    numbered = pc.match_substring(bids["url"], "&channel_id=")
    assert pc.mean(hot).as_py() == pytest.approx(0.5, abs=0.03)
    assert pc.mean(numbered).as_py() == pytest.approx(0.45, abs=0.03)
    assert not pc.any(pc.and_(hot, numbered)).as_py()


def test_another_seed_gives_other_events() -> None:
    one, other = (Nexmark(seed=seed).events(0, 100)["bid"] for seed in (1, 2))
    assert one["price"] != other["price"]


def test_a_rate_of_nothing_is_refused() -> None:
    with pytest.raises(HeadgateError, match="rate_per_s"):
        Nexmark(rate_per_s=0)
