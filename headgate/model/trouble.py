"""Trouble of a stream: why tuples do not arrive."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Trouble:
    """What keeps a stream's source from delivering.

    Args:
        state: FAILING if the source is tried again by itself, STOPPED if it is not.
        cause: in a sentence.
    """

    stream: str
    state: Literal["FAILING", "STOPPED"]
    cause: str
