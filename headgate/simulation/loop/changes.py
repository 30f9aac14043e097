"""Changes of a simulation from outside: queries that come and go, new policies."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from headgate.policies.interface import Policy


@dataclass(frozen=True)
class Switch:
    """A query that comes or goes at an instant (AMoS §1)."""

    at_s: float
    query: str
    does: Literal["come", "go"]


@dataclass(frozen=True)
class Replacement:
    """A new policy, or a new performance specification, at an instant.

    Args:
        policy: creates the policy.
        specification: its rows as text, for a policy that has a specification.
    """

    at_s: float
    policy: Callable[[], Policy] | None = None
    specification: str | None = None
