"""The last minute of a run, compared with all steps that lie in it."""

from collections.abc import Sequence

import numpy as np
import pytest

from headgate.metrics import last_minute
from headgate.metrics.last_minute import (
    MERGED,
    SPAN_S,
    SPANS,
    LastMinute,
    minute_s,
    recent_by_unit,
)
from headgate.metrics.tally import STEP
from headgate.model.arrays import Floats
from headgate.model.events import StepFinished
from headgate.model.plan import BoxCall


def step(
    at_s: float,
    units: Sequence[int],
    responses_s: Sequence[Floats],
    tuples: int = 10,
    failed: tuple[int, ...] = (),
) -> StepFinished:
    call = BoxCall(0, tuple(units), 0, 0, 1, tuples)
    counts = tuple(map(len, responses_s))
    return StepFinished(at_s, call, 0.1, counts, tuple(responses_s), failed=failed)


@pytest.mark.parametrize("most_steps", [1, 7, last_minute.MOST_STEPS])
def test_is_what_the_steps_of_the_minute_did(
    most_steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(last_minute, "MOST_STEPS", most_steps)
    random, minute, steps = np.random.default_rng(3), LastMinute(), list[StepFinished]()
    for at_s in np.sort(random.uniform(1000.0, 1300.0, 600)).tolist():
        units = sorted(random.choice([3, 8, 900], random.integers(1, 4), replace=False).tolist())
        values = [random.exponential(unit, random.integers(0, 30)) for unit in units]
        steps.append(step(at_s, units, values, failed=tuple(units[:1]) if at_s % 1 < 0.1 else ()))
        minute.hear(steps[-1])
    now_s = 1302.0
    recent = recent_by_unit(minute.counts(now_s))
    assert set(recent) == {3, 8, 900}
    inside = [event for event in steps if event.at_s >= now_s - minute_s(now_s)]
    assert 50 < len(inside) < 200
    for unit, figures in recent.items():
        mine = [event for event in inside if unit in event.call.units]
        values_s = np.concatenate(
            [event.responses_s[event.call.units.index(unit)] for event in mine]
        )
        assert figures.tuples == 10 * sum(unit not in event.failed for event in mine)
        assert figures.results == len(values_s)
        assert figures.mean_s == pytest.approx(values_s.mean())
        exact_s = np.quantile(values_s, 0.95, method="inverted_cdf")
        assert figures.p95_s == pytest.approx(exact_s, rel=STEP**MERGED - 1)


def test_forgets_what_is_older_even_if_nothing_happens() -> None:
    minute = LastMinute()
    minute.hear(step(100.0, (1,), [np.array([2.0])]))
    minute.hear(step(120.0, (2,), [np.zeros(0)]))
    first, second = recent_by_unit(minute.counts(100.0 + SPANS * SPAN_S - 0.1)).values()
    assert (first.results, first.mean_s) == (1, 2.0)
    assert (second.tuples, second.results) == (10, 0)
    assert np.isnan(second.p95_s)
    assert set(recent_by_unit(minute.counts(100.0 + SPANS * SPAN_S))) == {2}
    assert recent_by_unit(minute.counts(1000.0)) == {}


def test_a_response_time_that_is_not_known_counts_as_no_result() -> None:
    minute = LastMinute()
    minute.hear(step(100.0, (1,), [np.array([np.inf, 2.0])]))
    assert recent_by_unit(minute.counts(101.0))[1].results == 1
