"""A policy around another one, which decides inside of it."""

from collections.abc import Sequence

from headgate.policies.interface import Policy
from headgate.policies.registry import policy_named


class Around(Policy):
    """Has the alarm and the foresight of the policy inside.

    Args:
        inner: the policy inside, by name or itself.
    """

    def __init__(self, inner: str | Policy) -> None:
        self.inner = policy_named(inner) if isinstance(inner, str) else inner
        if not isinstance(self.inner, Policy):
            raise ValueError("inner: the name of a policy, or a policy")
        self.foresees = self.inner.foresees

    @property
    def wake_at_s(self) -> float:  # type: ignore[override]  # that of the other, at any time
        return self.inner.wake_at_s

    def inside(self) -> Sequence[Policy]:
        return (self.inner,)
