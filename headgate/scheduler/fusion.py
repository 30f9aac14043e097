"""Fusion: which neighboring steps of a plan share one call."""

from collections.abc import Callable, Sequence

import numpy as np

from headgate.errors import PlanRejected
from headgate.model.arrays import Ints
from headgate.model.network.unit_table import UnitTable
from headgate.model.plan import Step


def fuse(
    steps: Sequence[Step],
    table: UnitTable,
    cursors: Ints,
    *,
    most: int,
    may_fuse: Callable[[int, int], bool],
    at_any_cost: bool = False,
    groups: Ints | None = None,
    only_group: bool = False,
) -> tuple[tuple[Step, ...], int | None]:
    """Return the first step of a plan and the steps that join its call, and where the call ends.

    A step joins if its unit reads the same stream from the same train. A unit whose cursor is
    further on cannot join. The call then ends at that cursor, so that both units can share the next
    call. Without this, two units that were once apart would stay apart while trains keep arriving.

    The results of a call leave together, at its end. Units of one group run the same code anyway,
    so they all join. Another group makes the others wait for Σ c̄ n of its units and saves the
    overhead o of a call. It is left out if it costs them more than it saves, unless the policy
    fuses at any cost (Aurora's min-cost against its min-latency).

    Args:
        most: how many units may share the call.
        groups: a number for every unit, the same for units that share code. Without it, every unit
            is a group of its own.
        only_group: whether no other group may join: the first unit runs whole, and its group is
            answered by the same call.

    Returns:
        The steps of the call, and the train before which it must end; None if nothing limits it.
    """
    units = np.array([step.unit for step in steps])
    streams, places = table["stream"][units], cursors[units]
    group = units if groups is None else groups[units]
    joins = group == group[0]
    if not (only_group or joins.all()):
        joins |= at_any_cost | _worth_waiting_for(steps, units, group, table)
    joins &= streams == streams[0]
    ahead = (places - places[0]).tolist()
    members, stop = [steps[0]], None
    for position in np.flatnonzero(joins)[1:].tolist():
        if len(members) >= most or not may_fuse(steps[0].unit, steps[position].unit):
            break
        if ahead[position] == 0:
            members.append(steps[position])
        elif ahead[position] > 0:
            further = int(places[position])
            stop = further if stop is None else min(stop, further)
    return tuple(members), stop


def _worth_waiting_for(
    steps: Sequence[Step], units: Ints, group: Ints, table: UnitTable
) -> np.ndarray:
    """Return for each step whether its group takes no longer than the overhead that it saves."""
    tuples = np.minimum([step.tuples for step in steps], table["pending"][units])
    _, place = np.unique(group, return_inverse=True)
    seconds = np.bincount(place, table["box_cost_s"][units] * tuples)
    cheap: np.ndarray = seconds[place] <= table["overhead_s"][units]
    return cheap


def check(steps: Sequence[Step], ready: Ints, policy: str) -> None:
    """Raise PlanRejected if a plan cannot run; policies suggest, the scheduler decides."""
    units, may_run = [step.unit for step in steps], set(ready.tolist())
    if len(units) == len(may_run.intersection(units)):
        return
    for number, unit in enumerate(units):
        reason = "" if unit in may_run else "has nothing pending, runs, or does not exist"
        reason = "the same plan has named already" if unit in units[:number] else reason
        if reason:
            raise PlanRejected(policy=policy, unit=unit, reason=reason)
