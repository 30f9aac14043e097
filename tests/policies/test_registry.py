"""Policies by name."""

import pytest

from headgate.errors import ConfigRefused, UnknownName
from headgate.policies import policies, policy_named


def test_the_skeletons_policies_are_known_with_paper_objective_and_rule() -> None:
    entries = policies()
    assert {"rr", "fcfs", "hr", "hnr", "bsd", "cqc"} <= set(entries)
    for name in ("rr", "fcfs", "hr", "hnr", "bsd", "cqc"):
        entry = entries[name]
        assert entry.paper, name
        assert entry.objective, name
        assert entry.rule, name


def test_a_policy_knows_the_name_it_was_asked_by() -> None:
    assert [policy_named(name).name for name in ("rr", "hr", "cqc")] == ["rr", "hr", "cqc"]


def test_two_policies_of_one_name_share_nothing() -> None:
    assert policy_named("rr") is not policy_named("rr")


def test_an_unknown_policy_is_answered_with_the_nearest_and_all_known() -> None:
    with pytest.raises(UnknownName) as refused:
        policy_named("fcsf")
    assert "there is no policy 'fcsf'. Did you mean 'fcfs'? Known: " in str(refused.value)
    assert "bsd, chain, cqc, edf, edf-hr, fas, fcfs" in str(refused.value)


def test_an_unknown_parameter_is_answered_with_policy_and_nearest() -> None:
    with pytest.raises(UnknownName) as refused:
        policy_named("cqc", perod_s=1.0)
    assert str(refused.value) == (
        "policy 'cqc': there is no parameter 'perod_s'. Did you mean 'period_s'? "
        "Known: inner, period_s, period_steps."
    )


def test_a_policy_without_parameters_takes_none() -> None:
    with pytest.raises(UnknownName, match="policy 'hr': there is no parameter 'quantum_s'"):
        policy_named("hr", quantum_s=1.0)


def test_a_parameter_of_the_wrong_type_is_refused_with_the_policys_name() -> None:
    with pytest.raises(ConfigRefused, match=r"^policy 'cqc': parameters"):
        policy_named("cqc", period_s="long")
