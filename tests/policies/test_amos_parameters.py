"""The parameters of AMoS, and their refusals."""

from math import nan
from typing import Any

import pytest

from headgate.errors import ConfigRefused, UnknownName
from headgate.policies import Policy, policy_named
from headgate.policies.amos import LIBRARY, Amos

THREE = ("rr", "fcfs", "hr")


def test_names_may_stand_in_one_text() -> None:
    amos = policy_named("amos", policies="rr, fcfs,hr")
    assert isinstance(amos, Amos)
    assert [candidate.policy.name for candidate in amos.candidates] == ["rr", "fcfs", "hr"]


def test_the_library_is_that_of_the_paper_and_the_rate_based() -> None:
    assert set(LIBRARY) >= {"rr-box", "fcfs", "mtiq", "chain"}


@pytest.mark.parametrize(
    ("parameters", "part"),
    [
        ({"decay": 0.0}, "decay above 0 and below 0.5"),
        ({"decay": 0.5}, "decay above 0 and below 0.5"),
        ({"dwell_s": 0.0}, "dwell_s above 0 seconds"),
        ({"dwell_s": nan}, "dwell_s above 0 seconds"),
        ({"policies": ()}, "policies: at least one"),
        ({"policies": ("rr", "rr")}, "each once, not 'rr' twice"),
        ({"policies": (7,)}, "names of policies, or policies"),
        ({"learning": 7}, "learning: the name of a learning strategy"),
        ({"specification": "pending:minimize:0.5"}, "give row 1 \\(pending\\) 1 instead of 0.5"),
    ],
)
def test_a_parameter_that_cannot_be_is_refused(parameters: Any, part: str) -> None:
    with pytest.raises(ConfigRefused, match=part):
        policy_named("amos", **{"policies": THREE, **parameters})


def test_amos_does_not_choose_among_those_that_choose() -> None:
    inner: Policy = policy_named("amos", policies=THREE)
    with pytest.raises(ConfigRefused, match="that set no wake-up time, not 'amos'"):
        policy_named("amos", policies=("hr", inner))


@pytest.mark.parametrize(
    ("parameters", "part"),
    [
        ({"policies": ("rr", "fcsf")}, "no policy 'fcsf'"),
        ({"learning": "roulete"}, "no learning strategy 'roulete'"),
        ({"specification": "pendin:minimize:1"}, "no metric 'pendin'"),
    ],
)
def test_an_unknown_name_is_answered_as_such(parameters: Any, part: str) -> None:
    with pytest.raises(UnknownName, match=part):
        policy_named("amos", **{"policies": THREE, **parameters})
