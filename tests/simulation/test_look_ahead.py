"""Runs ahead: they know the present and not the future, and leave the run as it is."""

import pytest

from headgate.policies import policy_named
from headgate.policies.amos import Amos
from headgate.runtime.what_if.simulate import simulation_of
from headgate.runtime.what_if.simulation_options import fresh
from headgate.runtime.what_if.workload import Workload, workload
from headgate.simulation.loop.changes import Replacement
from headgate.simulation.loop.look_ahead import LookAhead
from headgate.simulation.loop.run import Simulation
from headgate.simulation.loop.run_report import report_of

PLAN = workload("amos", plan=1, tuples=1500, utilisation=0.95, swing=0.0, seed=100)
SHARAF = workload("sharaf", queries=20, tuples=1500, utilisation=1.2, seed=100)


def run(work: Workload, policy: str, **options: object) -> Simulation:
    chosen = policy_named(policy) if policy != "amos" else policy_named(policy, **options)
    return simulation_of(work.network, work.arrivals, chosen, **fresh(work.options))


def ahead(library: str, specification: str) -> dict[str, object]:
    return {"policies": library, "specification": specification, "learning": "look-ahead"}


@pytest.mark.parametrize("work", [PLAN, SHARAF], ids=["operators", "queries"])
def test_an_outlook_of_the_true_future_is_what_then_happens(work: Workload) -> None:
    simulation = run(work, "fcfs")
    simulation.run_until(1.5)
    before = simulation.world.clock["pending_area"][0]
    outlook = LookAhead(simulation, foreknows=True).outlook([policy_named("fcfs")], 1.0)
    assert outlook is not None
    assert simulation.world.clock["pending_area"][0] == before
    simulation.run_until(2.5)
    area = float(simulation.world.clock["pending_area"][0] - before)
    assert outlook.values[0][0]["pending"] == pytest.approx(area, rel=1e-9)


def test_looking_ahead_leaves_the_run_as_it_is() -> None:
    watched = run(PLAN, "amos", **ahead("chain", "pending:minimize:1"))
    alone = run(PLAN, "chain")
    reports = []
    for simulation in (watched, alone):
        simulation.run()
        reports.append(report_of("", simulation.world, simulation.units))
    assert reports[0].total.response_s == reports[1].total.response_s
    assert reports[0].total.pending_mean == pytest.approx(reports[1].total.pending_mean, rel=1e-9)


def test_trains_stand_for_all_tuples_that_wait() -> None:
    """With a tenth of the calls, the expected queue is about as long as with every tuple."""
    simulation = run(SHARAF, "fcfs")
    simulation.run_until(2.0)
    candidates = [policy_named("fcfs"), policy_named("hnr")]
    full = LookAhead(simulation, futures=3).outlook(candidates, 1.0)
    coarse = LookAhead(simulation, futures=3, most_calls=24_000).outlook(candidates, 1.0)
    assert full is not None
    assert coarse is not None
    means = [
        [sum(row["mean_slowdown"] for row in futures) for futures in outlook.values]
        for outlook in (full, coarse)
    ]
    assert means[0][1] < means[0][0]
    assert means[1][1] / means[1][0] == pytest.approx(means[0][1] / means[0][0], rel=0.2)


def test_a_policy_has_its_own_compiled_form_after_others_are_gone() -> None:
    """Python gives the id of an object that is gone to the next one."""
    simulation = run(SHARAF, "fcfs")
    picks: dict[str, set[object]] = {"fcfs": set(), "hnr": set()}
    for name in list(picks) * 20:
        policy = policy_named(name)
        policy.prepare(simulation.units)
        selection = simulation.selection(policy)
        assert selection is not None
        picks[name].add(selection.pick)
    assert [len(functions) for functions in picks.values()] == [1, 1]
    assert picks["fcfs"] != picks["hnr"]


def test_the_policy_in_charge_follows_a_change_of_the_specification() -> None:
    amos = policy_named("amos", **ahead("mtiq,fcfs,chain", "mean_response_s:minimize:1"))
    assert isinstance(amos, Amos)
    half_s = PLAN.ends_at_s / 2
    change = Replacement(half_s, specification="pending:minimize:1")
    simulation = simulation_of(
        PLAN.network, PLAN.arrivals, amos, replacements=[change], **fresh(PLAN.options)
    )
    simulation.run_until(half_s)
    assert amos.in_charge(half_s).name == "fcfs"
    simulation.run()
    assert amos.in_charge(simulation.now_s).name == "chain"
    changes = [choice for choice in amos.choices if choice.before != choice.chosen]
    assert {choice.chosen for choice in changes} == {"fcfs", "chain"}
    assert all(set(choice.scores) == {"mtiq", "fcfs", "chain"} for choice in amos.choices)
