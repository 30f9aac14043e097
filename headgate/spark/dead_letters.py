"""Dead letters: records that a source had and nobody could read."""

import json
from dataclasses import dataclass


@dataclass(frozen=True)
class Letter:
    """A record that could not be read: where it was, what it was, why."""

    place: str
    record: str
    reason: str


def letter_line(letter: Letter) -> str:
    """Gives a dead letter as a line of JSON."""
    return json.dumps({"place": letter.place, "record": letter.record, "reason": letter.reason})
