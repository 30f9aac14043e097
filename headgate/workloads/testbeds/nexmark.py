"""The streams of the Nexmark benchmark: persons, auctions and bids of an auction site.

Columns, proportions, first ids and categories are those of the public benchmark; the values are
our own. Of 50 events the first is a person, the next three are auctions, and 46 are bids.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headgate.workloads.random_hash import scrambled
from headgate.workloads.value_checks import above_zero, whole

Numbers = NDArray[np.int64]

SCHEMAS = {
    "person": "id BIGINT, name STRING, emailAddress STRING, creditCard STRING, city STRING,"
    " state STRING, dateTime TIMESTAMP, extra STRING",
    "auction": "id BIGINT, itemName STRING, description STRING, initialBid BIGINT, reserve BIGINT,"
    " dateTime TIMESTAMP, expires TIMESTAMP, seller BIGINT, category BIGINT, extra STRING",
    "bid": "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING,"
    " dateTime TIMESTAMP, extra STRING",
}

PERSONS, AUCTIONS, ALL = 1, 3, 50
"""Of every 50 events, 1 is a person and 3 are auctions."""

FIRST_ID, FIRST_CATEGORY, CATEGORIES = 1000, 10, 5
OPEN_AUCTIONS, ACTIVE_PERSONS = 50, 200
"""A bid is for one of the last 50 auctions, and by one of the last 200 persons."""

HOT_CHANNELS = ("Apple", "Google", "Facebook", "Baidu")

_TYPES: dict[str, Any] = {
    "BIGINT": pa.int64(),
    "STRING": pa.string(),
    "TIMESTAMP": pa.timestamp("us", tz="UTC"),
}
_NAMES = ("Ada", "Boris", "Chen", "Dora", "Emil", "Fatma", "Goran", "Hana", "Ivo", "Jana")
_FAMILIES = ("Adler", "Brook", "Castle", "Dale", "Elm", "Field", "Grove", "Hill")
_STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
_CITIES = ("Phoenix", "Fresno", "Boise", "Portland", "Seattle", "Laramie")
_ITEMS = ("lamp", "chair", "clock", "vase", "radio", "globe", "piano", "kite")
_CONDITIONS = ("new", "as new", "used", "worn", "to be repaired")


@dataclass(frozen=True, kw_only=True)
class Nexmark:
    """A generator of events 0, 1, ...; a seed and a number always yield the same event.

    The time advances by 1/rate_per_s from one event to the next. One event in ten has a time up to
    `behind_s` earlier, so that streams are out of order.

    Args:
        start_s: the time of the first event, in seconds since 1970.
    """

    seed: int = 1
    rate_per_s: float = 20.0
    start_s: float = 1_704_067_200.0  # 2024 begins
    behind_s: float = 6.0

    def __post_init__(self) -> None:
        whole("nexmark", least=0, seed=self.seed)
        above_zero("nexmark", rate_per_s=self.rate_per_s)

    @property
    def longest_s(self) -> float:
        """The longest time an auction is open: until `OPEN_AUCTIONS` newer ones have come in."""
        return OPEN_AUCTIONS * ALL / AUCTIONS / self.rate_per_s

    def events(self, first: int, count: int) -> dict[str, pa.Table]:
        """Return the events first, ..., first + count − 1, as one table by stream name."""
        numbers = np.arange(first, first + count, dtype=np.int64)
        place = numbers % ALL
        return {
            "person": self.persons(numbers[place < PERSONS]),
            "auction": self.auctions(
                numbers[(place >= PERSONS) & (place < PERSONS + AUCTIONS)],
            ),
            "bid": self.bids(numbers[place >= PERSONS + AUCTIONS]),
        }

    def persons(self, numbers: Numbers) -> pa.Table:
        """Return the persons with these event numbers."""
        names = self._one_of(_NAMES, "name", numbers)
        families = self._one_of(_FAMILIES, "family", numbers)
        ids, home = _last_person(numbers), self._below("home", numbers, len(_STATES))
        cards = self._below("card", numbers, 10**16)
        return _table(
            "person",
            {
                "id": ids,
                "name": [f"{a} {b}" for a, b in zip(names, families, strict=True)],
                "emailAddress": [
                    f"{name.lower()}.{number}@example.org"
                    for name, number in zip(names, ids.tolist(), strict=True)
                ],
                "creditCard": [f"{card:016d}" for card in cards.tolist()],
                "city": [_CITIES[place] for place in home],
                "state": [_STATES[place] for place in home],
                "dateTime": self._times(numbers),
                "extra": self._extra(numbers),
            },
        )

    def auctions(self, numbers: Numbers) -> pa.Table:
        """Return the auctions with these event numbers; half of them are by a few sellers."""
        items = self._one_of(_ITEMS, "item", numbers)
        conditions = self._one_of(_CONDITIONS, "condition", numbers)
        first_bids, times = self._prices("initial", numbers) // 100, self._times(numbers)
        open_us = self._below("open", numbers, round(self.longest_s * 1e6))
        return _table(
            "auction",
            {
                "id": _last_auction(numbers),
                "itemName": items,
                "description": [f"{a}, {b}" for a, b in zip(items, conditions, strict=True)],
                "initialBid": first_bids,
                "reserve": first_bids + self._prices("reserve", numbers) // 100,
                "dateTime": times,
                "expires": times + 1 + open_us,
                "seller": self._person("seller", numbers, hot=1 / 2, group=10),
                "category": FIRST_CATEGORY + self._below("category", numbers, CATEGORIES),
                "extra": self._extra(numbers),
            },
        )

    def bids(self, numbers: Numbers) -> pa.Table:
        """Return the bids with these event numbers; half for a hot auction, most by hot bidders."""
        last = _last_auction(numbers)
        hot = FIRST_ID + (last - FIRST_ID) // 10 * 10
        choices = np.minimum(last - FIRST_ID + 1, OPEN_AUCTIONS)
        other = last - self._below("auction", numbers, choices)
        channels = self._below("channel", numbers, 1000)
        by_name = self._chance("by name", numbers) < 1 / 2
        with_number = self._chance("with number", numbers) < 0.9
        paths = self._below("path", numbers, 26**3)
        named = [
            HOT_CHANNELS[channel % len(HOT_CHANNELS)] if hot else f"channel-{channel}"
            for channel, hot in zip(channels.tolist(), by_name, strict=True)
        ]
        return _table(
            "bid",
            {
                "auction": np.where(self._chance("hot auction", numbers) < 1 / 2, hot, other),
                "bidder": self._person("bidder", numbers, hot=3 / 4, group=20),
                "price": self._prices("price", numbers),
                "channel": named,
                "url": [
                    f"https://auctions.example/{_word(path)}/{_word(path // 7)}/item.htm?query=1"
                    + (f"&channel_id={channel}" if numbered and not hot else "")
                    for path, channel, numbered, hot in zip(
                        paths.tolist(), channels.tolist(), with_number, by_name, strict=True
                    )
                ],
                "dateTime": self._times(numbers),
                "extra": self._extra(numbers),
            },
        )

    def _times(self, numbers: Numbers) -> Numbers:
        on_time = round(self.start_s * 1e6) + np.round(numbers * (1e6 / self.rate_per_s))
        behind = self._chance("is behind", numbers) < 0.1
        delay = np.round(self._chance("behind", numbers) * self.behind_s * 1e6)
        return (on_time - np.where(behind, delay, 0)).astype(np.int64)

    def _person(self, purpose: str, numbers: Numbers, *, hot: float, group: int) -> Numbers:
        """Return existing persons: with chance `hot` the first of the last group, else any."""
        last = _last_person(numbers)
        choices = np.minimum(last - FIRST_ID + 1, ACTIVE_PERSONS)
        other = last - self._below(purpose, numbers, choices)
        is_hot = self._chance(f"hot {purpose}", numbers) < hot
        return np.where(is_hot, FIRST_ID + (last - FIRST_ID) // group * group, other)

    def _prices(self, purpose: str, numbers: Numbers) -> Numbers:
        """Return prices in cents, from 1 to a million dollars, with a uniform logarithm."""
        return np.round(10 ** (6 * self._chance(purpose, numbers)) * 100).astype(np.int64)

    def _extra(self, numbers: Numbers) -> list[str]:
        return [_word(number, 8) for number in self._below("extra", numbers, 26**8).tolist()]

    def _one_of(self, words: Sequence[str], purpose: str, numbers: Numbers) -> list[str]:
        return [words[index] for index in self._below(purpose, numbers, len(words))]

    def _below(self, purpose: str, numbers: Numbers, most: int | Numbers) -> Numbers:
        return (self._chance(purpose, numbers) * most).astype(np.int64)

    def _chance(self, purpose: str, numbers: Numbers) -> NDArray[np.float64]:
        """Return random numbers in [0, 1), different ones for every purpose."""
        words = numbers.astype(np.uint64)
        for seed in (self.seed, int.from_bytes(purpose.encode())):
            words = scrambled(seed, words)
        return (words >> np.uint64(11)).astype(np.float64) / 2**53


def _last_person(numbers: Numbers) -> Numbers:
    """Return the id of the last person at each event, the event itself included."""
    return FIRST_ID + numbers // ALL


def _last_auction(numbers: Numbers) -> Numbers:
    """Return the id of the last auction at each event, the event itself included."""
    place = np.clip(numbers % ALL - PERSONS, -1, AUCTIONS - 1)
    return FIRST_ID + numbers // ALL * AUCTIONS + place


def _word(number: int, letters: int = 3) -> str:
    """Spell a number in lowercase letters.

    >>> _word(27)
    'bba'
    """
    return "".join(chr(ord("a") + number // 26**power % 26) for power in range(letters))


def _table(stream: str, values: Mapping[str, Any]) -> pa.Table:
    columns = [column.split() for column in SCHEMAS[stream].split(",")]
    return pa.table({name: pa.array(values[name], _TYPES[kind]) for name, kind in columns})
