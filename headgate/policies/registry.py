"""Policies by name: our own, those of a user's module, those of installed packages."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import Any, TypeVar

from headgate.errors import ConfigRefused, UnknownName
from headgate.policies.interface import Policy

ENTRY_POINTS = "headgate.policies"

MakesPolicy = TypeVar("MakesPolicy", bound=Callable[..., Policy])


@dataclass(frozen=True)
class PolicyEntry:
    """A policy's line in `headgate policies`."""

    name: str
    make: Callable[..., Policy]
    objective: str
    paper: str
    starves: bool
    rule: str
    parameters: dict[str, Any] = field(default_factory=dict)


_entries: dict[str, PolicyEntry] = {}


def register(
    name: str, *, objective: str = "", paper: str = "", starves: bool = True, rule: str = ""
) -> Callable[[MakesPolicy], MakesPolicy]:
    """Makes a policy class, or a function that returns a policy, known by name."""

    def enter(make: MakesPolicy) -> MakesPolicy:
        parameters = {
            parameter.name: parameter.default
            for parameter in inspect.signature(make).parameters.values()
            if parameter.default is not parameter.empty
        }
        _entries[name] = PolicyEntry(
            name, make, objective, paper, starves, rule or inspect.getdoc(make) or "", parameters
        )
        return make

    return enter


def policies() -> dict[str, PolicyEntry]:
    """Gives every known policy by name; installed packages are asked when the name is not ours."""
    for point in entry_points(group=ENTRY_POINTS):
        if point.name not in _entries:
            point.load()
    return dict(sorted(_entries.items()))


def policy_named(name: str, **parameters: Any) -> Policy:
    """Gives a new policy.

    Raises:
        UnknownName: nobody registered that name.
        ConfigRefused: the policy has no such parameter, or refuses its value.

    >>> policy_named("cqc", inner="hnr").name
    'cqc'
    """
    entry = _entries.get(name) or policies().get(name)
    if entry is None:
        raise UnknownName(kind="policy", name=name, known=policies())
    for key in parameters:
        if key not in entry.parameters:
            raise UnknownName(
                kind="parameter", name=key, known=entry.parameters, where=f"policy '{name}'"
            )
    try:
        policy = entry.make(**parameters)
    except (TypeError, ValueError) as error:
        raise ConfigRefused(
            path=f"policy '{name}'", key="parameters", value=parameters, expected=str(error)
        ) from error
    policy.name = name
    return policy
