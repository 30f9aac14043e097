"""Sharaf's aggregate queries: random RANGE and SLIDE, deadline = SLIDE (§3.5, §3.8.1.13)."""

from headgate.model.arrays import Floats
from headgate.model.network.network import Network, Path
from headgate.model.network.operator import Operator
from headgate.model.query import Query
from headgate.workloads.random_generators import generator
from headgate.workloads.testbeds.sharaf import ONE_CLASS, PACKETS, WINDOW_S, drawn, packets
from headgate.workloads.testbeds.testbed import Testbed


def aggregates(
    *,
    queries: int = 500,
    utilisation: float = 0.95,
    tuples: int = 20_000,
    rate_per_s: float = 400.0,
    arrivals: Floats | None = None,
    seed: int = 0,
) -> Testbed:
    """Return the testbed of Figures 22 to 24.

    A query is a select, a project and a window aggregate. The thesis says only "random values":
    here RANGE is uniform over 1, 2, ... 10 s (Table 3) and SLIDE over 1 s, ... RANGE.
    """
    traits, rng = drawn(queries, seed), generator(seed, "windows")
    ranges_s = rng.integers(WINDOW_S[0], WINDOW_S[1] + 1, queries)
    windows = list(zip(ranges_s.tolist(), rng.integers(1, ranges_s + 1).tolist(), strict=True))

    def network(unit_s: float) -> Network:
        paths = []
        for number, (trait, (range_s, slide_s)) in enumerate(zip(traits, windows, strict=True)):
            window = f"[RANGE {range_s} SECONDS SLIDE {slide_s} SECONDS]"
            query = Query(
                name=f"q{number}",
                sql=f"SELECT sum(a2) FROM packets {window} WHERE a1 <= {trait.percent}",
                query_class="all",
                deadline_s=float(slide_s),
            )
            aggregate = Operator(
                kind="aggregate",
                expressions=("sum(a2)",),
                cost_s=unit_s * trait.cost,
                range_s=float(range_s),
                slide_s=float(slide_s),
            )
            operators = (trait.predicate(unit_s, 1), trait.project(unit_s), aggregate)
            paths.append(Path(query=query, stream="packets", operators=operators))
        return Network((PACKETS,), ONE_CLASS, tuple(paths))

    times_s = packets(tuples, rate_per_s, seed) if arrivals is None else arrivals
    return Testbed.at(
        utilisation,
        network,
        {"packets": times_s},
        name="sharaf aggregates",
        note=f"{queries} queries of select, project, window aggregate; RANGE 1 to 10 s, SLIDE up "
        "to RANGE and the deadline",
    )
