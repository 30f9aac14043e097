"""A policy around another one, to which it leaves some of the decisions."""

from collections.abc import Sequence

from headgate.policies.interface import Policy
from headgate.policies.registry import policy_named


class OuterPolicy(Policy):
    """A policy with an inner policy, whose wake-up time and need for foresight it takes over.

    Args:
        inner: the inner policy, by name or as an object.
    """

    def __init__(self, inner: str | Policy) -> None:
        self.inner = policy_named(inner) if isinstance(inner, str) else inner
        if not isinstance(self.inner, Policy):
            raise ValueError("inner: the name of a policy, or a policy")
        self.foresees = self.inner.foresees

    @property
    def wake_at_s(self) -> float:  # type: ignore[override]  # follows the inner policy
        return self.inner.wake_at_s

    def inside(self) -> Sequence[Policy]:
        return (self.inner,)
