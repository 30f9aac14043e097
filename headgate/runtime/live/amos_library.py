"""The policy `amos` of a run: its library, what it is asked for, and its choices."""

from typing import Any

from headgate.errors import ConfigRefused
from headgate.model.performance import METRICS
from headgate.policies import Policy
from headgate.policies.amos import Amos
from headgate.runtime.describe.explanation import number
from headgate.runtime.pipeline import refuse_off_spark
from headgate.runtime.policy_text import Spelled


def amos_among(policy: Policy) -> Amos:
    """Return the policy as `amos`.

    Raises:
        ConfigRefused: it is another policy.
    """
    if not isinstance(policy, Amos):
        raise ConfigRefused(
            path="policy", key="name", value=policy.name,
            expected="amos: no other policy has a library and a performance specification",
        )  # fmt: skip
    return policy


def newcomer_of(policy: str | Policy) -> Policy:
    """Return a policy that runs on Spark, by its text or as an object."""
    newcomer = Spelled(policy).make() if isinstance(policy, str) else policy
    refuse_off_spark(newcomer)
    return newcomer


def refuse_newcomer(amos: Amos, newcomer: Policy) -> None:
    """Refuse a policy that cannot come into the library, and say why."""
    try:
        amos.refuse(newcomer)
    except ValueError as error:
        raise ConfigRefused(
            path="policy 'amos'", key="policies", value=newcomer.name, expected=str(error)
        ) from error


def policy_explanation(policy: Policy, in_charge: str) -> dict[str, Any]:
    """Return the policy in words; of `amos`, also its scores and every choice that is kept."""
    amos = amos_of(policy)
    if amos is None or not isinstance(policy, Amos):
        return {"policy": in_charge, "amos": None, "choices": []}
    return {"policy": in_charge, "amos": amos, "choices": choices_of(policy)}


def choices_of(amos: Amos) -> list[dict[str, Any]]:
    """Return every choice that is kept: when, which policy, every score, and why."""
    return [
        {
            "at_s": choice.at_s,
            "before": choice.before,
            "chosen": choice.chosen,
            "scores": {name: number(score) for name, score in choice.scores.items()},
            "why": choice.why,
        }
        for choice in list(amos.choices)
    ]


def amos_of(policy: Policy) -> dict[str, Any] | None:
    """Return what `amos` is asked for, and how it judges its policies; None of another policy."""
    if not isinstance(policy, Amos):
        return None
    return {
        "specification": [
            {"metric": row.metric, "quantifier": row.quantifier, "weight": row.weight}
            for row in policy.specification.requirements
        ],
        "metrics": list(METRICS),
        "scores": [
            {"policy": candidate.policy.name, "score": number(score), "turns": candidate.turns}
            # Not strict: the loop may add a candidate at this moment.
            for candidate, score in zip(policy.candidates, policy.scores, strict=False)
        ],
    }
