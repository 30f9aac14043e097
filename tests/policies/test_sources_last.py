"""CQC's baselines as AQSIOS ran them: queues are drained, and sources come last (CQC §3)."""

import pytest
from kit.networks import line, network, ran, report, results, select

from headgate.model.plan import ALL
from headgate.policies import policy_named

# A cheap source before an operator, twice: the source of the second query has the best rate.
TWO = network(line("a", select(1.0), select(2.0)), line("b", select(0.5), select(2.0)))


@pytest.mark.parametrize("inner", ["hr", "rr-box"])
def test_sources_run_only_when_no_other_operator_has_tuples(inner: str) -> None:
    policy = policy_named("sources-last", inner=inner)
    assert policy.tuples_a_step == ALL
    ended = ran(TWO, {"s": [0.0, 0.0, 6.1]}, policy, level="operator")
    # One source drains its queue, its operator follows at once, and only then the other source.
    by_query = [name for name, _, _ in results(ended)]
    assert by_query[:4] in (["a", "a", "b", "b"], ["b", "b", "a", "a"])
    assert len(by_query) == 6


def test_at_query_level_there_are_no_sources() -> None:
    inner, outer = (
        results(ran(TWO, {"s": [0.0, 0.0]}, policy, train_tuples=ALL))
        for policy in (policy_named("hr"), policy_named("sources-last", inner="hr"))
    )
    assert inner == outer


def test_round_robin_pays_for_every_empty_operator_that_it_visits() -> None:
    # Three operators; only the last has tuples, so each decision passes the two others.
    three = network(*(line(f"q{n}", select(1.0), stream=f"s{n}") for n in range(3)),
                    streams=("s0", "s1", "s2"))  # fmt: skip
    for name in ("rr-box", "rr"):
        ended = ran(three, {"s2": [0.0, 0.0]}, name, visit_s=0.25)
        assert report(ended).scheduler_s == 2 * 2 * 0.25
        assert ended.now_s == 2 * 1.0 + 1.0
    assert report(ran(three, {"s2": [0.0, 0.0]}, "hr", visit_s=0.25)).scheduler_s == 0.0


def test_mtiq_as_a_batch_scheduler_takes_whole_queues() -> None:
    # The example's default of one tuple costs a call for each; a batch costs one call.
    one = network(line("q", select(1.0)))
    times = {"s": [0.0] * 4}
    calls = [
        report(ran(one, times, policy_named("mtiq", batch=batch), overhead_s=1.0)).calls
        for batch in (False, True)
    ]
    assert calls == [4, 1]


def test_a_class_without_tuples_pays_for_two_polls() -> None:
    classes = {"H": 6.0, "N": 1.0}
    two = network(line("h", select(1.0), stream="t", query_class="H"),
                  line("n", select(1.0), query_class="N"), streams=("s", "t"),
                  classes=classes)  # fmt: skip
    ended = ran(two, {"s": [0.0]}, "cqc", poll_s=0.5)
    assert report(ended).scheduler_s == 2 * 0.5
