"""Which neighbours of a plan share one call: those that stand at the same train and may."""

from collections.abc import Callable, Sequence

import numpy as np

from headgate.model.events import Ints
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
) -> tuple[tuple[Step, ...], int | None]:
    """Gives the first step of a plan with the neighbours that join it, and where they must stop.

    A neighbour joins when it reads the same stream from the same train. One that stands further on
    cannot; the call then stops where that one stands, so that both go on together from there.
    Without this, two units that once were apart would stay apart while trains keep arriving.

    Every result of a call waits for its last. A neighbour makes the others wait for c̄ n and saves
    itself the overhead o of a call; it is left out when it costs them more than it saves, unless
    the policy fuses at any cost (Aurora's min-cost against its min-latency).
    """
    units = [step.unit for step in steps]
    rows, places = table[units], cursors[units].tolist()
    streams = rows["stream"].tolist()
    tuples = np.minimum([step.tuples for step in steps], rows["pending"])
    too_long = (rows["tuple_cost_s"] * tuples > rows["overhead_s"]).tolist()
    members, stop = [steps[0]], None
    for at in range(1, len(steps)):
        if len(members) >= most:
            break
        if streams[at] != streams[0]:
            continue
        if not may_fuse(units[0], units[at]):
            break
        if too_long[at] and not at_any_cost:
            continue
        ahead = places[at] - places[0]
        if ahead == 0:
            members.append(steps[at])
        elif ahead > 0:
            stop = places[at] if stop is None else min(stop, places[at])
    return tuple(members), stop
