"""Any number of queries of the demo's kinds: cheap selections, and costly ones in C and N."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, count, islice

from headgate import Query

CLASSES = {"H": 6.0, "C": 3.0, "N": 1.0}
STREAM = "sensors"

RISK = (
    "aggregate(sequence(1, 120), 0D, (risk, hour) -> risk"
    " + exp(-hour / 24D) * temperature * (100 - humidity) / 4000D)"
)
MOISTURE = (
    "aggregate(sequence(1, 150), 0D, (moisture, hour) -> moisture"
    " + exp(-hour / 48D) * humidity / (1D + temperature))"
)
# The sums in closed form, so that the expected answer does not depend on Spark. They differ from
# Spark's sums in the last digits only, and no reading is that close to a threshold.
RISK_PLAIN = (
    f"({math.fsum(math.exp(-hour / 24) for hour in range(1, 121))!r}"
    " * temperature * (100 - humidity) / 4000.0)"
)
MOISTURE_PLAIN = (
    f"({math.fsum(math.exp(-hour / 48) for hour in range(1, 151))!r}"
    " * humidity / (1.0 + temperature))"
)


@dataclass(frozen=True)
class Selection:
    """A query of the comparison: Spark's text, and its condition in plain SQL for DuckDB.

    Args:
        streams: the streams that the query reads.
        native: the text for native Structured Streaming, if it differs.
        answer: DuckDB's text, if it is more than a condition. It selects `at_us`, the rows' times.
    """

    name: str
    query_class: str
    sql: str
    condition: str
    streams: tuple[str, ...] = (STREAM,)
    native: str = ""
    answer: str = ""

    @property
    def times(self) -> str:
        """DuckDB's text that selects the times of the query's rows."""
        return self.answer or f"SELECT at_us FROM {STREAM} WHERE {self.condition}"

    def query(self) -> Query:
        return Query(name=self.name, sql=self.sql, query_class=self.query_class)


Kind = Callable[[int], tuple[str, str]]
"""A function of n that returns the output columns and the condition of the n-th query of a kind."""


def _fire_alarm(n: int) -> tuple[str, str]:
    return "temperature, humidity", f"temperature >= {39 - n % 4} AND humidity < {10 + n // 4}"


def _village_fire(n: int) -> tuple[str, str]:
    where = f"location = 'forest-{(3 + n) % 20:05d}' AND temperature > {36 - n // 20}"
    return "temperature, humidity", f"{where} AND humidity < 20"


def _flash_point(n: int) -> tuple[str, str]:
    excess = "temperature - humidity"
    return f"{excess} AS excess", f"{excess} > {35 - n % 10} AND temperature < {41 - n // 10}"


def _dry_alarm(n: int) -> tuple[str, str]:
    return "humidity", f"humidity < {2 + n % 5} AND temperature > {n // 5}"


def _hot(n: int) -> tuple[str, str]:
    return "temperature", f"temperature > {35 - n % 5} AND humidity <= {100 - n // 5}"


def _hot_and_dry(n: int) -> tuple[str, str]:
    return "temperature, humidity", f"temperature > {32 + n % 5} AND humidity < {25 + n // 5}"


def _north_hot(n: int) -> tuple[str, str]:
    return "temperature", f"location < 'forest-{10 - n % 5:05d}' AND temperature > {34 - n // 5}"


def _fahrenheit(n: int) -> tuple[str, str]:
    column = "temperature * 9 / 5 + 32 AS fahrenheit"
    return column, f"temperature > {37 - n % 5} AND humidity < {90 - n // 5}"


def _cold(n: int) -> tuple[str, str]:
    return "temperature", f"temperature < {5 - n % 4} AND humidity <= {100 - n // 4}"


def _humid(n: int) -> tuple[str, str]:
    return "humidity", f"humidity > {90 + n % 8} AND temperature >= {n // 8}"


def _mild(n: int) -> tuple[str, str]:
    mild = f"temperature BETWEEN {18 - n % 6} AND 22 AND humidity BETWEEN {40 - n // 6} AND 60"
    return "temperature, humidity", mild


def _station(n: int) -> tuple[str, str]:
    where = f"location = 'forest-{n % 20:05d}' AND temperature <= {40 - n // 20}"
    return "temperature, humidity", where


def _fire_risk(n: int) -> tuple[str, str]:
    return f"{RISK} AS risk", f"{RISK} > {_spread(14, 8, n)}"


def _fuel_moisture(n: int) -> tuple[str, str]:
    tests = (f"> {_spread(40, 50, n)}", f"< {_spread(1, 2, n)}", f"> {_spread(100, 200, n)}")
    return f"{MOISTURE} AS moisture", f"{MOISTURE} {tests[n % 3]}"


def _spread(least: float, width: float, n: int) -> float:
    """Return the n-th of numbers that fill [least, least + width) evenly and never repeat."""
    return round(least + width * (n * 0.6180339887 % 1), 4)


CHEAP: dict[str, tuple[Kind, ...]] = {
    "H": (_fire_alarm, _village_fire, _flash_point, _dry_alarm),
    "C": (_hot, _hot_and_dry, _north_hot, _fahrenheit),
    "N": (_cold, _humid, _mild, _station),
}
COSTLY: dict[str, Kind] = {"C": _fire_risk, "N": _fuel_moisture}
ONE_COSTLY_IN = 4


def selections(number: int) -> list[Selection]:
    """Return different queries: a quarter in H, the rest evenly in C and N, as in the demo.

    The classes alternate, so that no class starts before the others.

    >>> [query.name for query in selections(4)]
    ['h0_fire_alarm', 'c0_hot', 'n0_cold', 'c1_fire_risk']
    """
    wanted = {"H": round(number / 4), "C": round(number * 3 / 8)}
    wanted["N"] = number - sum(wanted.values())
    rows = {name: list(islice(_of_class(name), size)) for name, size in wanted.items()}
    chosen = [
        rows[name][n] for n in range(max(wanted.values())) for name in CLASSES if n < wanted[name]
    ]
    if len({query.sql for query in chosen}) < number:
        raise ValueError(f"only {len({query.sql for query in chosen})} of {number} queries differ")
    return chosen


def _of_class(name: str) -> Iterator[Selection]:
    cheap = costly = 0
    for n in count():
        if name in COSTLY and n % ONE_COSTLY_IN == 1:
            kind, number = COSTLY[name], costly
            costly += 1
        else:
            kind = CHEAP[name][cheap % len(CHEAP[name])]
            number = cheap // len(CHEAP[name])
            cheap += 1
        yield _selection(f"{name.lower()}{n}{kind.__name__}", name, *kind(number))


def _selection(name: str, query_class: str, columns: str, condition: str) -> Selection:
    plain = condition.replace(RISK, RISK_PLAIN).replace(MOISTURE, MOISTURE_PLAIN)
    sql = f"SELECT location, {columns}, ts FROM {STREAM} WHERE {condition}"
    return Selection(name, query_class, sql, plain)


ATOMS = (
    "temperature > {a}",
    "temperature <= {b}",
    "temperature <> {a}",
    "temperature % {c} = 1",
    "humidity < {b}",
    "humidity >= {a}",
    "humidity % {c} <> 0",
    "temperature + humidity > {b}",
    "temperature * humidity < {d}",
    "humidity - temperature > {a}",
    "location <> 'forest-{e:05d}'",
    "length(location) > {c}",
    "abs(temperature - humidity) > {c}",
)
"""Conditions that mean the same to Spark and DuckDB. Any three or four make a form of query."""


def distinct(number: int) -> list[Selection]:
    """Return queries of which no two are equal after their constants are removed.

    >>> distinct(2)[0].condition
    'temperature > 1 AND temperature <= 41 AND temperature <> 1'
    """
    forms = [*combinations(ATOMS, 3), *combinations(ATOMS, 4)]
    if number > len(forms):
        raise ValueError(f"only {len(forms)} of {number} queries differ in form")
    return [_formed("distinct", n, " AND ".join(forms[n])) for n in range(number)]


def constants(number: int) -> list[Selection]:
    """Return queries that differ only in their constants."""
    form = "location = 'forest-{e:05d}' AND temperature > {a} AND humidity < {b}"
    return [_formed("constants", n, form) for n in range(number)]


def _formed(kind: str, n: int, form: str) -> Selection:
    condition = form.format(
        a=1 + n // 20 % 10, b=41 + n // 200 % 50, c=3 + n % 5, d=500 + n, e=n % 20
    )
    query_class = "HCCNNCNN"[n % 8]
    name = f"{query_class.lower()}{n}_{kind}"
    return _selection(name, query_class, "temperature, humidity", condition)


def streams_of(queries: Sequence[Selection]) -> list[str]:
    """Return the streams that the queries read, each once."""
    return list(dict.fromkeys(name for query in queries for name in query.streams))


MIXES: dict[str, Callable[[int], list[Selection]]] = {
    "demo": selections,
    "distinct": distinct,
    "constants": constants,
}
