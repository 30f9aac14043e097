"""The simulation benchmark: SimPy and the kernel run the same model, and bars are checked."""

import importlib
from pathlib import Path
from typing import Any

import pytest

BENCH = Path(__file__).parents[1] / "bench"


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that imports a file of bench/. Its files import each other by name."""
    monkeypatch.syspath_prepend(str(BENCH))
    return importlib.import_module


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["hr", "bsd"])
@pytest.mark.parametrize("lean", [False, True])
def test_every_tuple_leaves_simpy_when_it_leaves_the_kernel(
    bench: Any, policy: str, lean: bool
) -> None:
    comparison = bench("against_simpy")
    in_simpy, timed = comparison.in_simpy(policy, queries=12, tuples=150, lean=lean)
    in_kernel = comparison.in_kernel(policy, queries=12, tuples=150)
    assert len(in_kernel) > 100
    comparison.assert_same(in_simpy, in_kernel)
    kernel = bench("speed").timed(bench("speed").simulation(policy, 12, 150))
    assert timed.box_calls == kernel.box_calls


def test_runs_that_differ_in_one_departure_are_not_the_same(bench: Any) -> None:
    comparison = bench("against_simpy")
    left = comparison.in_kernel("hr", queries=3, tuples=20)
    other = left.copy()
    other[0, 2] += 1e-6
    comparison.assert_same(left, left[::-1])
    with pytest.raises(AssertionError, match="apart"):
        comparison.assert_same(left, other)
    with pytest.raises(AssertionError, match="tuples left"):
        comparison.assert_same(left, left[1:])


@pytest.mark.parametrize(
    ("measured", "bar", "at_most", "verdict"),
    [(2.0, 2.0, False, "pass"), (1.9, 2.0, False, "miss"), (2.1, 2.0, True, "miss"),
     (1.9, 2.0, True, "pass"), (1.9, None, False, "")],
)  # fmt: skip
def test_a_bar_is_reached_from_its_own_side(
    bench: Any, measured: float, bar: float | None, at_most: bool, verdict: str
) -> None:
    row = bench("bars").Measurement(what="", measured=measured, unit="", bar=bar, at_most=at_most)
    assert row.verdict == verdict


def test_policies_are_told_apart_by_how_they_find_the_next_unit(bench: Any) -> None:
    kind_of = bench("speed").kind_of
    kinds = {name: kind_of(name) for name in ("hr", "chain", "bsd", "mtiq", "qos", "rr", "cqc")}
    assert kinds == {
        "hr": "static", "chain": "static", "bsd": "exact", "mtiq": "exact", "qos": "exact",
        "rr": "other", "cqc": "python",
    }  # fmt: skip
