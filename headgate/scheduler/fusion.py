"""Which neighbours of a plan share one call: those that stand at the same train and may."""

from collections.abc import Callable, Sequence

import numpy as np

from headgate.model.arrays import Ints
from headgate.model.plan import Step
from headgate.model.unit_table import UnitTable


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
    """Gives the first step of a plan with the neighbours that join it, and where they must stop.

    A neighbour joins when it reads the same stream from the same train. One that stands further on
    cannot; the call then stops where that one stands, so that both go on together from there.
    Without this, two units that once were apart would stay apart while trains keep arriving.

    Every result of a call waits for its last. Units of one group run as one anyway, so they join.
    Another group makes the others wait for Σ c̄ n of its units and saves the overhead o of a call;
    it is left out when it costs them more than it saves, unless the policy fuses at any cost
    (Aurora's min-cost against its min-latency).

    Args:
        groups: a number for every unit, the same for those whose code is shared; without it every
            unit is a group of its own.
        only_group: whether no other group may join: the first runs whole, and what is in its group
            is answered with it.
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
    for at in np.flatnonzero(joins)[1:].tolist():
        if len(members) >= most or not may_fuse(steps[0].unit, steps[at].unit):
            break
        if ahead[at] == 0:
            members.append(steps[at])
        elif ahead[at] > 0:
            further = int(places[at])
            stop = further if stop is None else min(stop, further)
    return tuple(members), stop


def _worth_waiting_for(
    steps: Sequence[Step], units: Ints, group: Ints, table: UnitTable
) -> np.ndarray:
    """Tells of each step whether its group takes no longer than the overhead that it saves."""
    tuples = np.minimum([step.tuples for step in steps], table["pending"][units])
    _, place = np.unique(group, return_inverse=True)
    seconds = np.bincount(place, table["box_cost_s"][units] * tuples)
    cheap: np.ndarray = seconds[place] <= table["overhead_s"][units]
    return cheap
