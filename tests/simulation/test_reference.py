"""The engine against an independent simulator of one worker that takes one tuple at a time."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate import simulate
from headgate.model.events import Event, StepFinished
from headgate.model.network.network import Network, Path
from headgate.model.network.operator import Operator
from headgate.model.query import Query, QueryClass
from headgate.model.stream import Stream

GRAIN_S = 1 / 64  # so that every sum of times is exact, in floats as in fractions


@dataclass(frozen=True)
class Case:
    """Each query's operators as (cost in grains, selectivity in quarters), and who passes."""

    operators: tuple[tuple[tuple[int, int], ...], ...]
    streams: tuple[int, ...]
    arrivals: tuple[tuple[int, ...], ...]
    fates: tuple[tuple[int, ...], ...]


def reference(case: Case, policy: str) -> list[tuple[int, int, Fraction]]:
    """Return (query, tuple, response in grains) in the order in which results leave."""
    queries = range(len(case.operators))
    cursors, now, last, results = [0] * len(queries), Fraction(0), -1, []
    while True:
        waiting = [q for q in queries if cursors[q] < len(case.arrivals[case.streams[q]])]
        if not waiting:
            return results
        head = {q: case.arrivals[case.streams[q]][cursors[q]] for q in waiting}
        now = max(now, Fraction(min(head.values())))
        ready = [q for q in waiting if head[q] <= now]
        if policy == "rr":
            chosen = min(ready, key=lambda q: (q <= last, q))
        elif policy == "fcfs":
            chosen = min(ready, key=lambda q: (head[q], q))
        else:
            chosen = min(ready, key=lambda q: (-rate(case.operators[q]), q))
        number, last = cursors[chosen], chosen
        cursors[chosen] += 1
        now += sum(cost for cost, _ in case.operators[chosen])
        if case.fates[chosen][number]:
            results.append((chosen, number, now - head[chosen]))


def rate(operators: tuple[tuple[int, int], ...]) -> Fraction:
    selectivity, cost = Fraction(1), Fraction(0)
    for grains, quarters in operators:
        cost += grains * selectivity
        selectivity *= Fraction(quarters, 4)
    return selectivity / cost


def simulated(case: Case, policy: str) -> list[tuple[int, int, Fraction]]:
    results = []

    def hear(event: Event) -> None:
        if isinstance(event, StepFinished):
            for response_s in event.responses_s[0]:
                unit, number = event.call.units[0], event.call.first_train
                results.append((unit, number, Fraction(float(response_s)) / Fraction(GRAIN_S)))

    paths = tuple(
        Path(
            query=Query(name=f"q{number}", sql="SELECT 1", query_class="only"),
            stream=f"s{case.streams[number]}",
            operators=tuple(
                Operator(kind="select", cost_s=grains * GRAIN_S, selectivity=quarters / 4)
                for grains, quarters in operators
            ),
        )
        for number, operators in enumerate(case.operators)
    )
    streams = tuple(Stream(name=f"s{n}", format="rate") for n in range(len(case.arrivals)))
    network = Network(streams, (QueryClass(name="only", priority=1),), paths)
    simulate(
        network,
        {f"s{n}": np.array(times) * GRAIN_S for n, times in enumerate(case.arrivals)},
        policy=policy,
        fates={f"q{n}": fate for n, fate in enumerate(case.fates)},
        listeners=[hear],
    )
    return results


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Draw up to four queries over up to two streams; two streams never share an instant."""
    operator = st.tuples(st.integers(1, 12), st.integers(1, 4))
    operators = draw(
        st.lists(st.lists(operator, min_size=1, max_size=2).map(tuple), min_size=1, max_size=4)
    )
    if draw(st.booleans()):
        arrivals = [sorted(draw(st.lists(st.integers(0, 60), max_size=8)))]
    else:
        times = sorted(draw(st.sets(st.integers(0, 60), max_size=10)))
        sides = draw(st.lists(st.booleans(), min_size=len(times), max_size=len(times)))
        arrivals = [
            [time for time, left in zip(times, sides, strict=True) if left is side]
            for side in (True, False)
        ]
    streams = [draw(st.integers(0, len(arrivals) - 1)) for _ in operators]
    fates = [tuple(draw(st.integers(0, 1)) for _ in arrivals[stream]) for stream in streams]
    return Case(tuple(operators), tuple(streams), tuple(map(tuple, arrivals)), tuple(fates))


@pytest.mark.parametrize("policy", ["hr", "fcfs", "rr"])
@given(case=cases())
def test_every_response_time_is_that_of_the_reference(policy: str, case: Case) -> None:
    assert simulated(case, policy) == reference(case, policy)
