"""Where the decisions of a replay first differ from those of the recorded run, and why."""

from collections.abc import Sequence

from headgate.model.events import NetworkChanged, PolicyChanged
from headgate.model.plan import BoxCall
from headgate.policies.amos import Amos
from headgate.runtime.policy_text import Spelled
from headgate.runtime.recording.recordings import Recording


def difference_of(recording: Recording, decided: Sequence[Sequence[BoxCall]]) -> str:
    """Return the first turn with other calls than the recorded ones, and why; "" if there is none.

    Args:
        decided: the calls that the policy begins now, turn by turn.
    """
    policy, network = recording.settings.policy, recording.network

    def names(calls: Sequence[BoxCall]) -> str:
        texts = [
            f"{'+'.join(network.paths[unit].query.name for unit in call.units)}"
            f" over trains {call.first_train}..{call.end_train - 1}"
            for call in calls
        ]
        return ", ".join(texts) or "nothing"

    for number, (turn, calls) in enumerate(zip(recording.turns, decided, strict=True), 1):
        if isinstance(turn.event, NetworkChanged):
            network = turn.event.network
        if isinstance(turn.event, PolicyChanged):
            policy = turn.event.policy
        recorded = [call for call, _ in turn.calls]
        if recorded != list(calls):
            return (
                f"first in turn {number} of {len(recording.turns)}, under {policy}: the run began"
                f" {names(recorded)}; with the same events it would begin {names(calls)}."
                f" {_reason(policy)}"
            )
    return ""


def _reason(text: str) -> str:
    """Return why a policy may decide otherwise with the same events."""
    policy = Spelled(text).make()
    if isinstance(policy, Amos):
        return "Changes of its specification during a run are not recorded."
    if not type(policy).__module__.startswith("headgate."):
        return "It is not one of Headgate's: it may read a clock or depend on the order of a set."
    return "The run was probably recorded by another version of Headgate."
