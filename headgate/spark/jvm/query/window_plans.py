"""The plans of a query over windows or sessions."""

from collections.abc import Sequence
from dataclasses import dataclass

from headgate.model.display.plan_summary import NotPossible
from headgate.model.window import GIVEN
from headgate.spark.jvm.query.plans import Plan, Plans


@dataclass(frozen=True)
class WindowPlans:
    """The plans of a query over windows.

    Args:
        one: the plan over the rows of one window.
        at_once: the plan over the rows of many windows, with the window as the last column of each
            row; None if windows can only be computed one after the other.
        always: whether a window has a result even if none of its rows passes WHERE.
    """

    one: Plan
    at_once: Plan | None = None
    always: bool = False

    @property
    def key(self) -> int:
        """A number that queries over windows share if they compute the same."""
        return (self.at_once or self.one).key


@dataclass(frozen=True)
class SessionPlans:
    """The plans of a query that groups by session.

    Args:
        ended: the query, with the session as its last column.
        every: all sessions, including those that HAVING drops.
    """

    ended: Plan
    every: Plan

    @property
    def key(self) -> int:
        """A number that queries over sessions share if they compute the same."""
        return self.ended.key


def window_plans(
    plans: Plans, plan: Plan, relations: Sequence[str], *, at_once: bool
) -> WindowPlans:
    """Return the plans of a query over windows of one stream, or windows that end together.

    Args:
        relations: the names of those that the query reads.
        at_once: whether many windows may be computed at once.

    Raises:
        NotPossible: window(...) is applied to a value computed from several tuples.
    """
    one = plans.one_window(plan)
    streamed = [name for name in relations if not name.startswith(GIVEN)]
    if len(streamed) != 1 or not at_once:
        return WindowPlans(one)
    try:
        return WindowPlans(one, *plans.windows(plan))
    except NotPossible:
        return WindowPlans(one)
