"""CQC's testbed: 21 queries of classes H, C and N over 27 sensor streams (§5.1, Tables 1 and 2).

Published: the kinds of query (nine aggregates, six 2-way joins, six selections), how many queries
each class has, the priorities, 1500 tuples per second and 10 000 tuples of each stream,
selectivities of selections from 0.25 to 1, values of humidity and temperature, 20 locations.

Chosen here, since the paper does not say: the kinds inside classes C and N of workloads B and C;
relative costs 1 (selection), 2 (aggregate) and 4 (join), with one factor set by the load; a time
unit of one tuple of a stream, 1/1500 s, so that a window holds ten tuples (at the 1 µs that Table 1
names for the scheduler it would hold none); aggregates that slide by their window; joins on equal
location; evenly spaced arrivals, each stream with a random phase.
"""

from typing import Literal, get_args

from headgate.errors import ConfigRefused
from headgate.model.network.network import Box, Network, Path
from headgate.model.network.operator import Operator
from headgate.model.query import Query, QueryClass
from headgate.model.stream import Stream
from headgate.workloads.load import busy_share, network_at, work_s
from headgate.workloads.poisson import poisson
from headgate.workloads.random_generators import generator
from headgate.workloads.testbeds.forest import LOCATIONS, SCHEMA
from headgate.workloads.testbeds.groups import evenly_spaced
from headgate.workloads.testbeds.testbed import Testbed
from headgate.workloads.value_checks import above_zero, whole

Workload = Literal["A", "B", "C"]

EVENLY = {name: {"aggregate": 3, "join": 2, "select": 2} for name in "HCN"}
UNEVENLY = {
    "H": {"join": 2},
    "C": {"aggregate": 4, "join": 2, "select": 2},
    "N": {"aggregate": 5, "join": 2, "select": 4},
}
MIXES: dict[str, dict[str, dict[str, int]]] = {"A": EVENLY, "B": UNEVENLY, "C": UNEVENLY}
"""By workload and class, the number of queries of each kind (Table 2)."""

PRIORITIES = {
    "A": {"H": 6.0, "C": 3.0, "N": 1.0},
    "B": {"H": 3.0, "C": 2.0, "N": 1.0},
    "C": {"H": 6.0, "C": 3.0, "N": 1.0},
}
COSTS = {"select": 1.0, "aggregate": 2.0, "join": 4.0, "source": 0.5}


def workload(
    name: Workload = "A",
    *,
    only: str | None = None,
    load: float = 0.95,
    rate_per_s: float = 1500.0,
    tuples: int = 10_000,
    window_units: float = 10.0,
    spacing: Literal["even", "poisson"] = "even",
    sources: bool = False,
    seed: int = 0,
) -> Testbed:
    """Return workload A, B or C; with `only="H"`, its class H alone at the same costs (A_H, ...).

    Args:
        load: expected work per second of all 21 queries; the paper says "highly loaded" without
            overload.
        window_units: the window of joins and aggregates, in gaps between two tuples of a stream.
        sources: put a source operator of cost 0.5 behind every stream, as AQSIOS does (§4.2).
    """
    testbed = "cqc"
    _one_of(testbed, "workload", name, get_args(Workload))
    _one_of(testbed, "only", "H" if only is None else only, ("H", "C", "N"))
    _one_of(testbed, "spacing", spacing, ("even", "poisson"))
    above_zero(testbed, load=load, rate_per_s=rate_per_s, window_units=window_units)
    whole(testbed, tuples=tuples)
    window_s = window_units / rate_per_s

    def network(unit_s: float) -> Network:
        return _network(name, unit_s, window_s, sources, seed)

    names = [f"s{number}" for number in range(27)]
    whole_network = network_at(load, network, dict.fromkeys(names, rate_per_s))
    phases = generator(seed, "phases").random(len(names))
    arrivals = {
        stream: evenly_spaced(rate_per_s, tuples, phase=float(phases[number]))
        if spacing == "even"
        else poisson(rate_per_s, tuples, len(names) * seed + number)
        for number, stream in enumerate(names)
    }
    chosen = whole_network if only is None else _restricted(whole_network, only)
    arrivals = {stream.name: arrivals[stream.name] for stream in chosen.streams}
    works_s = work_s(chosen, dict.fromkeys(arrivals, rate_per_s))
    return Testbed(
        name=f"cqc {name}" + ("" if only is None else f"_{only}"),
        network=chosen,
        arrivals=arrivals,
        note=f"workload {name}: {len(chosen.paths)} queries over {len(chosen.streams)} streams of "
        f"{rate_per_s:g} tuples/s, windows of {window_s:.4g} s, {spacing} arrivals",
        utilisation=sum(rate_per_s * tuple_s for tuple_s in works_s.values()),
        realised_utilisation=busy_share(arrivals, works_s),
    )


def _network(name: str, unit_s: float, window_s: float, sources: bool, seed: int) -> Network:
    rng = generator(seed, "selections")
    streams: list[Stream] = []
    boxes: list[Box] = []
    paths: list[Path] = []

    def stream() -> str:
        streams.append(Stream(name=f"s{len(streams)}", format="headgate", schema=SCHEMA))
        return streams[-1].name

    source = Operator(kind="project", cost_s=unit_s * COSTS["source"], selectivity=1.0)
    for class_name, kinds in MIXES[name].items():
        for kind, count in kinds.items():
            for number in range(count):
                query, cost_s = f"{class_name}_{kind}{number}", unit_s * COSTS[kind]
                if kind != "join":
                    reads = stream()
                    threshold = int(rng.integers(0, 76))
                    sql, operator = _one_stream_query(kind, reads, threshold, cost_s, window_s)
                    path = Path(
                        query=Query(name=query, sql=sql, query_class=class_name),
                        stream=reads,
                        operators=(source, operator) if sources else (operator,),
                    )
                else:
                    left, right = stream(), stream()
                    inputs = (left, right)
                    if sources:
                        inputs = (f"{query}_left", f"{query}_right")
                        boxes.append(Box(name=inputs[0], operator=source, inputs=(left,)))
                        boxes.append(Box(name=inputs[1], operator=source, inputs=(right,)))
                    match = 1.0 / len(LOCATIONS)
                    operator = Operator(
                        kind="join", cost_s=cost_s, selectivity=match, window_s=window_s
                    )
                    boxes.append(Box(name=f"{query}_join", operator=operator, inputs=inputs))
                    window = f"[RANGE {window_s} SECONDS]"
                    sql = (
                        f"SELECT * FROM {left} {window} JOIN {right} {window}"
                        f" ON {left}.location = {right}.location"
                    )
                    path = Path(
                        query=Query(name=query, sql=sql, query_class=class_name),
                        output=f"{query}_join",
                    )
                paths.append(path)
    classes = [
        QueryClass(name=class_name, priority=priority)
        for class_name, priority in PRIORITIES[name].items()
    ]
    return Network(tuple(streams), tuple(classes), tuple(paths), tuple(boxes))


def _one_stream_query(
    kind: str, stream: str, threshold: int, cost_s: float, window_s: float
) -> tuple[str, Operator]:
    """Return SQL and operator of a selection by humidity, uniform from 0 to 100, or an average."""
    if kind == "select":
        operator = Operator(
            kind="select",
            expressions=(f"humidity >= {threshold}",),
            cost_s=cost_s,
            selectivity=(101 - threshold) / 101,
        )
        return f"SELECT * FROM {stream} WHERE humidity >= {threshold}", operator
    operator = Operator(
        kind="aggregate",
        expressions=("avg(temperature)",),
        cost_s=cost_s,
        range_s=window_s,
        slide_s=window_s,
    )
    window = f"[RANGE {window_s} SECONDS SLIDE {window_s} SECONDS]"
    return f"SELECT avg(temperature) FROM {stream} {window}", operator


def _restricted(network: Network, class_name: str) -> Network:
    """Return the network with the queries of one class and what they read."""
    paths = [path for path in network.paths if path.query.query_class == class_name]
    inputs = {box.name: box.inputs for box in network.boxes}
    needed = {path.output or path.stream for path in paths}
    while more := {name for box in needed for name in inputs.get(box, ())} - needed:
        needed |= more
    return Network(
        tuple(stream for stream in network.streams if stream.name in needed),
        tuple(entry for entry in network.classes if entry.name == class_name),
        tuple(paths),
        tuple(box for box in network.boxes if box.name in needed),
    )


def _one_of(testbed: str, key: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        expected = "one of " + ", ".join(choices)
        raise ConfigRefused(path=testbed, key=key, value=value, expected=expected)
