"""Policies as they are written on a command line."""

import pytest

from headgate.errors import ConfigRefused, UnknownName
from headgate.policies.amos import Amos
from headgate.policies.bsd import BalancedSlowdown
from headgate.policies.cqc import Cqc
from headgate.runtime.policy_text import Spelled, spelled, value_of


def test_commas_inside_parentheses_separate_parameters_not_policies() -> None:
    policies = spelled("hr, bsd(search=log, clusters=12) ,rr")
    assert [policy.text for policy in policies] == ["hr", "bsd(search=log,clusters=12)", "rr"]


def test_a_policy_is_made_anew_for_every_run() -> None:
    policy = Spelled("bsd(search=log,clusters=7)")
    instance = policy.make()
    assert isinstance(instance, BalancedSlowdown)
    assert instance is not policy.make()


def test_several_values_are_joined_by_plus() -> None:
    policy = Spelled("amos(policies=hr+hnr,decay=0.1)").make()
    assert isinstance(policy, Amos)
    assert [candidate.policy.name for candidate in policy.candidates] == ["hr", "hnr"]
    assert policy.decay == 0.1


def test_one_value_is_enough_where_several_are_possible() -> None:
    policy = Spelled("amos(policies=hr)").make()
    assert isinstance(policy, Amos)
    assert [candidate.policy.name for candidate in policy.candidates] == ["hr"]


def test_a_specification_of_several_rows_is_joined_by_plus() -> None:
    policy = Spelled("amos(specification=pending:minimize:0.5+mean_response_s:minimize:0.5)").make()
    assert isinstance(policy, Amos)
    assert len(policy.specification.requirements) == 2


def test_a_value_may_itself_be_a_policy_with_parameters() -> None:
    policy = Spelled("cqc(inner=bsd(search=log),period_steps=3)").make()
    assert isinstance(policy, Cqc)
    assert Spelled("amos(policies=hr+bsd(search=log,clusters=3))").make().name == "amos"


def test_another_name_of_a_policy_means_the_policy() -> None:
    assert Spelled("fifo").name == "fcfs"


def test_a_folder_has_no_signs_that_spark_would_read() -> None:
    assert Spelled("bsd(search=log,clusters=12)").folder == "bsd-search-log-clusters-12"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hnrr", "there is no policy 'hnrr'. Did you mean 'hnr'?"),
        ("bsd(serch=log)", "there is no parameter 'serch'. Did you mean 'search'?"),
        ("bsd(search=log", "the parentheses do not match"),
        ("bsd(search=log))", "the parentheses do not match"),
        ("bsd(search)", "'search' is not KEY=VALUE"),
        ("bsd(search=log,search=exact)", "'search' is given twice"),
        ("bsd(search=log)x", "nothing may follow the last parenthesis"),
        ("bsd(clusters=0)", "policy 'bsd'"),
        ("cqc(inner=hnrr)", "there is no policy 'hnrr'"),
        (" , ", "must be a name, or a name with parameters as in bsd(search=log,clusters=12)"),
    ],
)
def test_a_slip_is_answered_with_what_is_expected(text: str, message: str) -> None:
    with pytest.raises((ConfigRefused, UnknownName)) as refused:
        spelled(text)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [("12", 12), ("-0.5", -0.5), ("1e+3", 1000.0), ("True", True), ("none", None), ("hr", "hr")],
)
def test_numbers_and_truths_are_told_from_words(text: str, value: object) -> None:
    assert value_of(text) == value
