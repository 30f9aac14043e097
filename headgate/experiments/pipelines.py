"""The papers' testbeds as pipelines on Spark: streams of the generator, and SQL of stated cost.

The cost of a tuple is a sum of many terms, which Spark adds up for it. One unit of cost is `steps`
terms, so that queries cost each other what their operators do in the simulation.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from headgate.model.query import Query, View
from headgate.model.stream import Stream
from headgate.workloads.random_generators import generator
from headgate.workloads.testbeds.amos import PLAN_1, PLAN_2
from headgate.workloads.testbeds.cqc import COSTS, MIXES, PRIORITIES
from headgate.workloads.testbeds.forest import LOCATIONS

POLL_S = 0.2
"""How often a source is polled. 27 sources at the default of 30 ms would keep a core busy."""

CQC_STEPS, CQC_WINDOW = 2_500, 10
"""Terms of a unit of cost, and the tuples of a stream in a window, as many as in the simulation."""

AMOS_STEPS, AMOS_WINDOW = 5_000, 20
"""The same for AMoS, whose window of 200 ms has 20 tuples at 100 tuples/s."""

AURORA_STEPS, BOXES = 1_000, 7
"""Terms of the cheapest box, and the boxes of a tree of depth 3 and fan-out 2."""

COLUMNS = "location, temperature, humidity, ts"
ONE_CLASS = {"all": 1.0}


@dataclass(frozen=True, kw_only=True)
class LivePipeline:
    """Streams, views and queries of a run.

    Args:
        classes: priority by class.
        readers: the views and queries that read the streams; all others read views.
    """

    streams: tuple[Stream, ...]
    views: tuple[View, ...] = ()
    queries: tuple[Query, ...]
    classes: Mapping[str, float]
    readers: tuple[str, ...]


def cqc(
    feed: Mapping[str, str],
    rate_per_s: float,
    seed: int,
    *,
    workload: str = "A",
    only: str | None = None,
    steps: int = CQC_STEPS,
) -> LivePipeline:
    """Return CQC's 21 queries over 27 streams; with `only`, the queries of one class.

    Args:
        feed: options of the generator.
        rate_per_s: the rate of a stream, from which the window of ten tuples follows.
    """
    thresholds, numbers = generator(seed, "selections"), count()
    streams, queries = list[Stream](), list[Query]()
    for class_name, kinds in MIXES[workload].items():
        for kind, number in [(kind, n) for kind, total in kinds.items() for n in range(total)]:
            places = [next(numbers) for _ in range(2 if kind == "join" else 1)]
            threshold = int(thresholds.integers(0, 76)) if kind == "select" else 0
            if only in (None, class_name):
                streams += [_stream(f"s{place}", place, feed, seed) for place in places]
                reads = [f"s{place}" for place in places]
                sql = _cqc_text(kind, reads, _window(CQC_WINDOW, rate_per_s), threshold, steps)
                name = f"{class_name}_{kind}{number}"
                queries.append(Query(name=name, sql=sql, query_class=class_name))
    return LivePipeline(
        streams=tuple(streams),
        queries=tuple(queries),
        classes=PRIORITIES[workload],
        readers=tuple(query.name for query in queries),
    )


def _cqc_text(kind: str, reads: Sequence[str], window: str, threshold: int, steps: int) -> str:
    terms = COSTS[kind] * steps
    if kind == "select":
        return _select(reads[0], f"{_after(terms, 'humidity')} >= {threshold}")
    if kind == "aggregate":
        return f"SELECT avg({_work(terms)}) AS mean FROM {reads[0]} {window}"
    # The work is done for each result, of which a tuple has less than one.
    work = _work(terms / (CQC_WINDOW / len(LOCATIONS)), "l.temperature")
    left, right = (f"{stream} {window}" for stream in reads)
    return f"SELECT l.location, {work} AS x FROM {left} l JOIN {right} r ON l.location = r.location"


def amos(
    feed: Mapping[str, str],
    rate_per_s: float,
    seed: int,
    *,
    plan: int = 1,
    swing: float = 0.0,
    steps: int = AMOS_STEPS,
) -> LivePipeline:
    """Return plan 1 or 2. Their operators are views, so that each has a queue of its own.

    Args:
        swing: by which share of `rate_per_s` the rate goes up and down. That adds pairs of tuples
            to the join of plan 2, so the work for a pair is less.
    """
    views, last = (_line if plan == 1 else _join)(rate_per_s, swing, steps)
    return LivePipeline(
        streams=tuple(_stream(f"data{number}", number, feed, seed) for number in (1, 2)[:plan]),
        views=views,
        queries=(Query(name=f"plan{plan}", sql=last, query_class="all"),),
        classes=ONE_CLASS,
        readers=("op1", "op2")[:plan],
    )


def _line(rate_per_s: float, swing: float, steps: int) -> tuple[tuple[View, ...], str]:
    """Return the views of plan 1, and the text of its last operator."""
    texts = [
        _filter(f"op{number - 1}" if number > 1 else "data1", number, selectivity, time * steps)
        for number, (selectivity, time) in enumerate(PLAN_1, start=1)
    ]
    views = (View(name=f"op{number}", sql=sql) for number, sql in enumerate(texts[:-1], start=1))
    return tuple(views), texts[-1]


def _join(rate_per_s: float, swing: float, steps: int) -> tuple[tuple[View, ...], str]:
    """Return the views of plan 2, and the text of its last operator."""
    (left, left_time), (right, right_time), (match, join_time), (last, last_time) = PLAN_2
    window, more = _window(AMOS_WINDOW, rate_per_s), 1 + swing**2
    results = 2 * left * right * AMOS_WINDOW * match * more  # for a tuple of each stream
    work = _work(join_time * steps * (left + right) / results, "a.temperature")
    views = (
        View(name="op1", sql=_filter("data1", 1, left, left_time * steps), event_time="ts"),
        View(name="op2", sql=_filter("data2", 2, right, right_time * steps), event_time="ts"),
        View(
            name="op3",
            sql="SELECT a.location, a.temperature, b.humidity, greatest(a.ts, b.ts) AS ts,"
            f" {work} AS x FROM op1 {window} a JOIN op2 {window} b ON a.location = b.location",
        ),
    )
    return views, _filter("op3", 4, last, last_time * steps / more)


def _filter(stream: str, number: int, selectivity: float, terms: float) -> str:
    """Return the text of an operator that lets a share of the tuples through."""
    drawn = _after(terms, f"pmod(hash(ts, temperature, humidity, {number}), 1000)")
    return _select(stream, f"{drawn} < {round(1000 * selectivity)}")


def aurora(
    feed: Mapping[str, str],
    rate_per_s: float,
    seed: int,
    *,
    superboxes: bool,
    apps: int = 2,
    steps: int = AURORA_STEPS,
) -> LivePipeline:
    """Return trees of boxes of random cost that let every tuple through, a stream for each leaf.

    Args:
        superboxes: whether a tree is one query, so that a call runs all its boxes. Else each box is
            a view, or at the root a query, and has a queue of its own.
    """
    costs = generator(seed, "costs")
    streams, views = list[Stream](), list[View]()
    queries, leaves = list[Query](), list[str]()
    for app in range(apps):
        names = [f"app{app}_{box}" for box in range(BOXES)]
        passes = [f"{_after(steps * float(costs.uniform(1, 10)))} >= 0" for _ in names]
        branches = list[str]()
        for box in reversed(range(BOXES)):
            inputs = names[2 * box + 1 : 2 * box + 3]
            if not inputs:
                inputs = [f"in{len(streams)}"]
                streams.append(_stream(inputs[0], len(streams), feed, seed))
                leaves.append(names[box])
                passed = " AND ".join(passes[above] for above in _to_the_root(box))
                branches.append(_select(inputs[0], passed))
            sql = " UNION ALL ".join(_select(stream, passes[box]) for stream in inputs)
            views.append(View(name=names[box], sql=sql, event_time="ts"))
        root = views.pop().sql
        sql = " UNION ALL ".join(branches) if superboxes else root
        queries.append(Query(name=names[0], sql=sql, query_class="all"))
    return LivePipeline(
        streams=tuple(streams),
        views=() if superboxes else tuple(views),
        queries=tuple(queries),
        classes=ONE_CLASS,
        readers=tuple(query.name for query in queries) if superboxes else tuple(leaves),
    )


def _to_the_root(box: int) -> list[int]:
    """Return the boxes that a tuple passes, in a tree of fan-out 2 numbered level by level."""
    path = [box]
    while path[-1]:
        path.append((path[-1] - 1) // 2)
    return path


def _select(stream: str, condition: str) -> str:
    return f"SELECT {COLUMNS} FROM {stream} WHERE {condition}"


def _work(terms: float, column: str = "temperature") -> str:
    """Return an expression that takes a time in proportion to a number of terms."""
    last = max(1, round(terms))
    return f"aggregate(sequence(1, {last}), 0D, (total, term) -> total + term * {column})"


def _after(terms: float, value: str = "0") -> str:
    """Return an expression with a value and the time of the work; it adds less than 0.1."""
    return f"({value} + 1e-12 * {_work(terms)})"


def _window(tuples: int, rate_per_s: float) -> str:
    """Return the window clause of so many tuples of a stream. The slide is the range."""
    return f"[RANGE {round(1e6 * tuples / rate_per_s)} MICROSECONDS]"


def _stream(name: str, number: int, feed: Mapping[str, str], seed: int) -> Stream:
    return Stream(
        name=name, format="headgate", options={**feed, "seed": str(100 * seed + number)},
        event_time="ts", arrival_time="ts", trigger_s=POLL_S,
    )  # fmt: skip
