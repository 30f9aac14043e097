"""The testbed of Sharaf chapter 3: hundreds of queries of three operators over one stream (§3.7).

A tuple has two attributes with uniform values from 1 to 100. The select of every query tests the
first, the join with a stored relation the second. So `a1 <= 30` passes three tuples in ten, and a
tuple that passes it also passes every wider condition. Costs are K·2^i; K follows from the
utilization and the measured mean time between arrivals. The thesis replays LBL-PKT-4, which is not
available: arrivals are Pareto on/off at a rate that we chose, or any that the caller passes.
"""

from dataclasses import dataclass

from headgate.model.arrays import Floats
from headgate.model.network.network import Box, Network, Path
from headgate.model.network.operator import Operator
from headgate.model.network.units import SharedPriority
from headgate.model.query import Query, QueryClass
from headgate.model.stream import Stream
from headgate.workloads.on_off import pareto_on_off
from headgate.workloads.poisson import poisson
from headgate.workloads.random_generators import generator
from headgate.workloads.testbeds.testbed import Testbed
from headgate.workloads.value_checks import between, whole

PACKETS = Stream(name="packets", format="headgate", schema="a1 INT, a2 INT")
ONE_CLASS = (QueryClass(name="all", priority=1.0),)
WINDOW_S = (1, 10)
"""Table 3: windows last 1 to 10 seconds."""


@dataclass(frozen=True)
class Traits:
    """What distinguishes a query: its operators cost K·2^cost_class and pass `percent` per cent."""

    cost_class: int
    percent: int

    @property
    def cost(self) -> float:
        return float(2**self.cost_class)

    @property
    def selectivity(self) -> float:
        return self.percent / 100

    @property
    def query_class(self) -> str:
        return f"cost{self.cost_class}_s{self.percent}"

    def predicate(self, unit_s: float, attribute: int) -> Operator:
        """Return the select on attribute 1, or the join with a stored relation on attribute 2."""
        return Operator(
            kind="select",
            expressions=(f"a{attribute} <= {self.percent}",),
            cost_s=unit_s * self.cost,
            selectivity=self.selectivity,
            attribute=attribute,
        )

    def project(self, unit_s: float) -> Operator:
        return Operator(
            kind="project", expressions=("*",), cost_s=unit_s * self.cost, selectivity=1.0
        )

    def path(
        self, number: int, unit_s: float, *, stream: str = "packets", query_class: str = "all"
    ) -> Path:
        """Return the whole query: select, join with a stored relation, project."""
        sql = f"SELECT * FROM {stream} WHERE a1 <= {self.percent} AND a2 <= {self.percent}"
        operators = (
            self.predicate(unit_s, 1),
            self.predicate(unit_s, 2),
            self.project(unit_s),
        )
        query = Query(name=f"q{number}", sql=sql, query_class=query_class)
        return Path(query=query, stream=stream, operators=operators)


def drawn(
    queries: int, seed: int, *, highest_selectivity: float = 1.0, cost_classes: int = 5
) -> list[Traits]:
    """Draw the selectivity 0.1, 0.2, ... and the cost class of each query, uniformly (§3.7)."""
    whole("sharaf", queries=queries, cost_classes=cost_classes)
    between("sharaf", 0.1, 1.0, highest_selectivity=highest_selectivity)
    rng = generator(seed, "traits")
    percents = 10 * rng.integers(1, round(10 * highest_selectivity) + 1, queries)
    costs = rng.integers(0, cost_classes, queries)
    return [Traits(int(cost), int(percent)) for cost, percent in zip(costs, percents, strict=True)]


def single_stream(
    *,
    queries: int = 500,
    utilisation: float = 0.95,
    tuples: int = 20_000,
    rate_per_s: float = 400.0,
    arrivals: Floats | None = None,
    highest_selectivity: float = 1.0,
    cost_classes: int = 5,
    by_class: bool = False,
    seed: int = 0,
) -> Testbed:
    """Return the testbed of Figures 7 to 20 and 25 to 28.

    Args:
        arrivals: arrival times to use instead of Pareto on/off, such as a recorded trace.
        highest_selectivity: selectivities are drawn from 0.1 to this one (Figures 15 and 16).
        by_class: make a class for each cost and selectivity, for results by class (Figure 14).
    """
    traits = drawn(
        queries, seed, highest_selectivity=highest_selectivity, cost_classes=cost_classes
    )
    names = [trait.query_class if by_class else "all" for trait in traits]
    classes = tuple(QueryClass(name=name, priority=1.0) for name in sorted(set(names)))

    def network(unit_s: float) -> Network:
        paths = [
            trait.path(number, unit_s, query_class=name)
            for number, (trait, name) in enumerate(zip(traits, names, strict=True))
        ]
        return Network((PACKETS,), classes, tuple(paths))

    times_s = packets(tuples, rate_per_s, seed) if arrivals is None else arrivals
    return Testbed.at(
        utilisation,
        network,
        {"packets": times_s},
        name="sharaf single stream",
        note=f"{queries} queries of select, stored join, project; selectivity 0.1 to "
        f"{highest_selectivity:g}; {cost_classes} cost classes K·2^i; {_source(arrivals)}",
    )


def shared_selects(
    *,
    queries: int = 500,
    group: int = 10,
    same_cost: bool = False,
    utilisation: float = 0.95,
    tuples: int = 20_000,
    rate_per_s: float = 400.0,
    arrivals: Floats | None = None,
    shared_priority: SharedPriority = "pdt",
    seed: int = 0,
) -> Testbed:
    """Return the testbed of Figures 29 to 31: sets of ten queries that share a select (§3.8.4).

    The select has the cost and selectivity of the first query of its set; each query has its own
    join and project. The thesis does not say whether they differ inside a set. If they were equal,
    all segments would have the same priority and there would be nothing to compare.

    Args:
        same_cost: all operators of a set cost as much as its select; only selectivities differ.
    """
    whole("sharaf", group=group)
    traits = drawn(queries, seed)
    if same_cost:
        firsts = [traits[number - number % group] for number in range(queries)]
        traits = [
            Traits(first.cost_class, trait.percent)
            for first, trait in zip(firsts, traits, strict=True)
        ]

    def network(unit_s: float) -> Network:
        boxes: list[Box] = []
        paths: list[Path] = []
        for number, trait in enumerate(traits):
            first = number - number % group
            select, join, output = f"select{first // group}", f"q{number}_join", f"q{number}_out"
            if number == first:
                boxes.append(
                    Box(name=select, operator=trait.predicate(unit_s, 1), inputs=("packets",))
                )
            boxes.append(Box(name=join, operator=trait.predicate(unit_s, 2), inputs=(select,)))
            boxes.append(Box(name=output, operator=trait.project(unit_s), inputs=(join,)))
            wider = traits[first].percent
            sql = f"SELECT * FROM packets WHERE a1 <= {wider} AND a2 <= {trait.percent}"
            query = Query(name=f"q{number}", sql=sql, query_class="all")
            paths.append(Path(query=query, output=output))
        return Network((PACKETS,), ONE_CLASS, tuple(paths), tuple(boxes))

    times_s = packets(tuples, rate_per_s, seed) if arrivals is None else arrivals
    return Testbed.at(
        utilisation,
        network,
        {"packets": times_s},
        name="sharaf shared selects",
        note=f"{queries} queries in sets of {group} that share a select; {_source(arrivals)}",
        shared_priority=shared_priority,
    )


def joins(
    *,
    queries: int = 500,
    utilisation: float = 0.9,
    tuples: int = 2_000,
    rate_per_s: float = 1.0,
    seed: int = 0,
) -> Testbed:
    """Return the testbed of Figure 21: window joins of two Poisson streams (§3.8.1.12).

    A query has a select on each side, the join over a window of 1 to 10 s and a project. All of its
    selectivities are equal; that of the join is the chance that two tuples match. Rate and tuples
    are those of one stream. They are chosen so that a tuple meets one or two partners, since the
    thesis says that the join's selectivity "often exceeds 1.0".
    """
    traits = drawn(queries, seed)
    windows_s = generator(seed, "windows").integers(WINDOW_S[0], WINDOW_S[1] + 1, queries)
    streams = tuple(
        Stream(name=name, format="headgate", schema="a1 INT, a2 INT") for name in ("left", "right")
    )

    def network(unit_s: float) -> Network:
        boxes: list[Box] = []
        paths: list[Path] = []
        for number, (trait, window_s) in enumerate(zip(traits, windows_s.tolist(), strict=True)):
            name, match = f"q{number}", trait.selectivity
            for side in ("left", "right"):
                operator = trait.predicate(unit_s, 1)
                boxes.append(Box(name=f"{name}_{side}", operator=operator, inputs=(side,)))
            joined = Operator(
                kind="join", cost_s=unit_s * trait.cost, selectivity=match, window_s=float(window_s)
            )
            inputs = (f"{name}_left", f"{name}_right")
            boxes.append(Box(name=f"{name}_join", operator=joined, inputs=inputs))
            output = Box(
                name=f"{name}_out", operator=trait.project(unit_s), inputs=(boxes[-1].name,)
            )
            boxes.append(output)
            window = f"[RANGE {window_s} SECONDS]"
            sql = (
                f"SELECT * FROM left {window} JOIN right {window}"
                f" ON (left.a2 + right.a2) % 100 < {trait.percent}"
                f" WHERE left.a1 <= {trait.percent} AND right.a1 <= {trait.percent}"
            )
            query = Query(name=name, sql=sql, query_class="all")
            paths.append(Path(query=query, output=output.name))
        return Network(streams, ONE_CLASS, tuple(paths), tuple(boxes))

    times_s = {
        stream.name: poisson(rate_per_s, tuples, 2 * seed + side)
        for side, stream in enumerate(streams)
    }
    return Testbed.at(
        utilisation,
        network,
        times_s,
        name="sharaf joins",
        note=f"{queries} window joins of two Poisson streams, {rate_per_s:g} tuples/s each; "
        f"windows of {WINDOW_S[0]} to {WINDOW_S[1]} s",
    )


def packets(tuples: int, rate_per_s: float, seed: int) -> Floats:
    """Return the arrivals that replace LBL-PKT-4 if no trace is passed."""
    return pareto_on_off(rate_per_s, tuples, seed)


def _source(arrivals: Floats | None) -> str:
    return "arrivals Pareto on/off" if arrivals is None else "arrivals as given"
