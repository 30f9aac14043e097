"""Which neighbours of a plan share one call: those that stand at the same train and may."""

from collections.abc import Callable, Sequence

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
    first, rest = steps[0], steps[1:]
    members, stop = [first], None
    for step in rest:
        if len(members) >= most:
            break
        if table["stream"][step.unit] != table["stream"][first.unit]:
            continue
        if not may_fuse(first.unit, step.unit):
            break
        waits_s = table["tuple_cost_s"][step.unit] * min(step.tuples, table["pending"][step.unit])
        if waits_s > table["overhead_s"][step.unit] and not at_any_cost:
            continue
        ahead = int(cursors[step.unit] - cursors[first.unit])
        if ahead == 0:
            members.append(step)
        elif ahead > 0:
            stop = int(cursors[step.unit]) if stop is None else min(stop, int(cursors[step.unit]))
    return tuple(members), stop
