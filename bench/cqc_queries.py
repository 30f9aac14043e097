"""CQC's 21 queries of section 5: nine aggregates, six 2-way joins, six selections, 27 streams.

The paper gives the kinds, how many of them each class has (Table 2), and the streams. Ranges and
comparisons are chosen here, as in `headgate/workloads/testbeds/cqc.py`, for streams that carry
1 500 tuples a second in total.
"""

from headgate.workloads.testbeds.cqc import MIXES
from queries import Selection

RANGE_S, SLIDE_S, JOIN_S = 2, 1, 1


def cqc(workload: str) -> list[Selection]:
    """Return the queries of workload A, B or C. Classes alternate, so that none starts first.

    >>> [query.name for query in cqc("B")][:3]
    ['H_join0', 'C_aggregate0', 'N_aggregate0']
    """
    by_class: dict[str, list[Selection]] = {}
    numbers = iter(range(27))
    for name, kinds in MIXES[workload].items():
        for kind, count in kinds.items():
            for n in range(count):
                streams = tuple(f"s{next(numbers)}" for _ in range(2 if kind == "join" else 1))
                by_class.setdefault(name, []).append(
                    KINDS[kind](f"{name}_{kind}{n}", name, streams, n)
                )
    most = max(map(len, by_class.values()))
    return [queries[n] for n in range(most) for queries in by_class.values() if n < len(queries)]


def _select(name: str, query_class: str, streams: tuple[str, ...], n: int) -> Selection:
    where = f"humidity >= {19 * n % 76}"
    sql = f"SELECT location, humidity, ts FROM {streams[0]} WHERE {where}"
    answer = f"SELECT at_us FROM {streams[0]} WHERE {where}"
    return Selection(name, query_class, sql, where, streams, answer=answer)


def _aggregate(name: str, query_class: str, streams: tuple[str, ...], n: int) -> Selection:
    columns = "location, avg(temperature) AS mean, window.end AS ts"
    window = f"[RANGE {RANGE_S} SECONDS SLIDE {SLIDE_S} SECONDS]"
    sql = f"SELECT {columns} FROM {streams[0]} {window} GROUP BY location"
    called = f"window(ts, '{RANGE_S} seconds', '{SLIDE_S} seconds')"
    native = f"SELECT {columns} FROM {streams[0]} GROUP BY {called}, location"
    slide_us, range_us = SLIDE_S * 1_000_000, RANGE_S * 1_000_000
    answer = (
        f"SELECT DISTINCT at_us, location FROM (SELECT location, unnest(generate_series("
        f"(at_us // {slide_us} + 1) * {slide_us}, at_us + {range_us}, {slide_us})) AS at_us"
        f" FROM {streams[0]})"
    )
    return Selection(name, query_class, sql, "", streams, native, answer)


def _join(name: str, query_class: str, streams: tuple[str, ...], n: int) -> Selection:
    columns = "l.location, l.temperature AS a, r.temperature AS b, greatest(l.ts, r.ts) AS ts"
    window = f"[RANGE {JOIN_S} SECONDS]"
    left, right = streams
    on = "l.location = r.location"
    sql = f"SELECT {columns} FROM {left} {window} l JOIN {right} {window} r ON {on}"
    near = f"l.ts >= r.ts - INTERVAL {JOIN_S} SECOND AND r.ts >= l.ts - INTERVAL {JOIN_S} SECOND"
    native = f"SELECT {columns} FROM {left} l JOIN {right} r ON {on} AND {near}"
    answer = (
        f"SELECT greatest(l.at_us, r.at_us) AS at_us FROM {left} l JOIN {right} r ON {on}"
        f" AND abs(l.at_us - r.at_us) <= {JOIN_S * 1_000_000}"
    )
    return Selection(name, query_class, sql, "", streams, native, answer)


KINDS = {"select": _select, "aggregate": _aggregate, "join": _join}
