"""A scheduler in which another policy takes over when a policy raises."""

import logging
from typing import Any

from headgate.model.events import Event, Measured, PolicyChanged, StepFinished, StepStarted
from headgate.model.plan import BoxCall
from headgate.policies import policy_named
from headgate.runtime.run.decisions import Decisions
from headgate.scheduler.scheduler import Scheduler

log = logging.getLogger("headgate")

SAFE = "rr"
"""The policy that takes over: it needs no measurements, and under it no query waits forever."""


class GuardedScheduler(Scheduler):
    """A scheduler in which no error of a policy ends the run.

    If the policy raises, or returns a plan that cannot run, round robin decides until a policy is
    set again. An error of round robin would be our own, and is raised.
    """

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        self.policy_error = ""
        """Why round robin decides in place of the policy that was set; "" if it does not."""
        self.decisions = Decisions()
        super().__init__(*arguments, **settings)

    @property
    def wake_at_s(self) -> float:
        try:
            return super().wake_at_s
        except Exception as error:
            self._replace_policy(error)
            return super().wake_at_s

    @property
    def running(self) -> int:
        """How many calls are under way."""
        return self._running

    def hear(self, event: Event) -> None:
        if isinstance(event, PolicyChanged):
            self.policy_error = ""
        super().hear(event)

    def _prepare(self) -> None:
        try:
            super()._prepare()
        except Exception as error:
            self._replace_policy(error)

    def _next_call(self, now_s: float) -> BoxCall | None:
        try:
            call = super()._next_call(now_s)
        except Exception as error:  # nothing has changed yet
            self._replace_policy(error)
            call = super()._next_call(now_s)
        if call is not None:
            policy = self.policy.in_charge(now_s)
            self.decisions.note(call, policy, self.visible, self.ready, self.network, now_s)
        return call

    def _tell(self, event: StepStarted | StepFinished | Measured) -> None:
        try:
            super()._tell(event)
        except Exception as error:
            self._replace_policy(error)

    def _replace_policy(self, error: Exception) -> None:
        if self.policy_error:
            raise error
        self.policy_error = f"{type(error).__name__}: {error}"
        log.error(
            "policy '%s' failed; '%s' decides until a policy is set", self.policy.name, SAFE,
            exc_info=error,
        )  # fmt: skip
        self.policy = policy_named(SAFE)
        self._prepare()
