"""Turns of AMoS: what was measured in one, and the choice at its end."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class TurnMeasures:
    """What was measured while a policy was in charge.

    Args:
        values: each metric's mean, where tuples that still wait count with their age.
        arrived_per_s: tuples that arrived, per second.
        waiting_before: tuples that waited when the turn began.
        waiting_after: tuples that waited when it ended.
        reward: the score of AMoS for this turn alone, in (0, 1).
    """

    values: Mapping[str, float]
    arrived_per_s: float
    waiting_before: float
    waiting_after: float
    reward: float


@dataclass(frozen=True, slots=True)
class Choice:
    """A choice of AMoS: when, which policy was in charge, which one is now, and every score.

    Args:
        scores: by policy; higher is better.
        why: the reason in words.
    """

    at_s: float
    before: str
    chosen: str
    scores: Mapping[str, float] = field(default_factory=dict)
    why: str = ""
