"""The learning strategies of `amos`, by name."""

from collections.abc import Callable

from headgate.errors import UnknownName
from headgate.policies.methods.learning import (
    EpsilonGreedy,
    Exp3,
    Learning,
    Roulette,
    Thompson,
    Ucb,
)
from headgate.policies.methods.look_ahead import LookingAhead
from headgate.policies.methods.relative import RelativeToLoad

LEARNING: dict[str, Callable[[], Learning]] = {
    "roulette": Roulette,
    "epsilon-greedy": EpsilonGreedy,
    "ucb": Ucb,
    "exp3": Exp3,
    "thompson": Thompson,
    "relative": RelativeToLoad,
    "look-ahead": LookingAhead,
}
"""Strategies by name. Add another one here, or pass it to `amos` as an object."""


def learning_named(name: str) -> Learning:
    """Create a learning strategy by its name.

    >>> type(learning_named("ucb")).__name__
    'Ucb'
    """
    if name not in LEARNING:
        raise UnknownName(kind="learning strategy", name=name, known=LEARNING)
    return LEARNING[name]()
