"""Policies by name: Headgate's own, those of a user's module, and those of installed packages."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from importlib.metadata import entry_points
from typing import Any, Literal, TypeVar

from headgate.errors import ConfigRefused, UnknownName
from headgate.model.network.units import Level
from headgate.policies.interface import Policy

ENTRY_POINTS = "headgate.policies"

MakesPolicy = TypeVar("MakesPolicy", bound=Callable[..., Policy])


Engine = Literal["simulation", "spark"]


@dataclass(frozen=True)
class PolicyEntry:
    """What `headgate policies` shows about a policy.

    `use` says when to choose the policy, `avoid` when not to; `aliases` are its other names.
    """

    name: str
    make: Callable[..., Policy]
    objective: str
    paper: str
    starves: bool
    rule: str
    parameters: dict[str, Any] = field(default_factory=dict)
    levels: tuple[Level, ...] = ("query", "operator")
    engines: tuple[Engine, ...] = ("simulation", "spark")
    aliases: tuple[str, ...] = ()
    use: str = ""
    avoid: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        names = (
            "name", "objective", "paper", "starves", "rule", "use", "avoid", "levels", "engines",
            "aliases",
        )  # fmt: skip
        parameters = {key: _word(value) for key, value in self.parameters.items()}
        return {**{name: getattr(self, name) for name in names}, "parameters": parameters}


_entries: dict[str, PolicyEntry] = {}
_aliases: dict[str, str] = {}


def register(
    name: str,
    *,
    objective: str = "",
    paper: str = "",
    starves: bool = True,
    rule: str = "",
    levels: tuple[Level, ...] = ("query", "operator"),
    engines: tuple[Engine, ...] = ("simulation", "spark"),
    aliases: tuple[str, ...] = (),
    use: str = "",
    avoid: str = "",
) -> Callable[[MakesPolicy], MakesPolicy]:
    """Register a policy class, or a function that returns a policy, under a name."""

    def enter(make: MakesPolicy) -> MakesPolicy:
        parameters = {
            parameter.name: parameter.default
            for parameter in inspect.signature(make).parameters.values()
            if parameter.default is not parameter.empty
        }
        text = rule or inspect.getdoc(make) or ""
        _entries[name] = PolicyEntry(
            name, make, objective, paper, starves, text, parameters, levels, engines, aliases,
            use, avoid,
        )  # fmt: skip
        for alias in aliases:
            _aliases[alias] = name
        return make

    return enter


def policies() -> dict[str, PolicyEntry]:
    """Return every policy by name. A package is loaded for each name that is not registered yet."""
    for point in entry_points(group=ENTRY_POINTS):
        if point.name not in _entries:
            point.load()
    return dict(sorted(_entries.items()))


def policy_named(name: str, **parameters: Any) -> Policy:
    """Create a policy by its name.

    Raises:
        UnknownName: no policy has that name, or the policy has no such parameter.
        ConfigRefused: the policy refuses the value of a parameter.

    >>> policy_named("cqc", inner="hnr").name
    'cqc'
    """
    entry = policy_entry(name)
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
    policy.name, policy.spelled = entry.name, _spelled(entry.name, parameters)
    return policy


def _spelled(name: str, parameters: Mapping[str, Any]) -> str:
    inside = ",".join(f"{key}={_word(value)}" for key, value in parameters.items())
    return f"{name}({inside})" if inside else name


def _word(value: Any) -> str:
    """Return a parameter's value as written on a command line; several values are joined by +."""
    if isinstance(value, Policy):
        return value.spelled or value.name
    if isinstance(value, list | tuple):
        return "+".join(map(_word, value))
    plain = value is None or isinstance(value, bool)
    return str(value).lower() if plain else str(value).replace(",", "+")


def refuse_inside(policy: Policy, *, level: Level, engine: Engine) -> None:
    """Refuse a policy if one inside it cannot run at this level or on this engine.

    Raises:
        ConfigRefused: it names the inner policy, and those with the nearest objective that can run.
    """
    if policy.looks_ahead and engine == "spark":
        raise ConfigRefused(
            path=f"policy '{policy.name}'", key="learning", value="look-ahead",
            expected="another strategy, such as relative: looking ahead works in simulations only",
        )  # fmt: skip
    for inner in policy.inside():
        entry = policies().get(inner.name)
        if entry is not None and not _fits(entry, level, engine):
            others = [other for other in policies().values() if _fits(other, level, engine)]
            others.sort(key=lambda other: -_alike(entry.objective, other.objective))
            nearest = ", ".join(other.name for other in others[:3])
            where = "in simulations" if engine == "simulation" else "on Spark"
            expected = f"one that runs at {level} level {where}; the nearest are {nearest}"
            raise ConfigRefused(
                path=f"policy '{policy.name}'", key="inner policy", value=inner.name,
                expected=expected,
            )  # fmt: skip
        refuse_inside(inner, level=level, engine=engine)


def _fits(entry: PolicyEntry, level: Level, engine: Engine) -> bool:
    return level in entry.levels and engine in entry.engines


def _alike(objective: str, other: str) -> float:
    """Compare the objectives of two policies, without what follows a comma: it only qualifies."""
    return SequenceMatcher(None, objective.partition(",")[0], other.partition(",")[0]).ratio()


def policy_entry(name: str) -> PolicyEntry:
    """Return the entry of a policy, by its name or by an alias.

    Raises:
        UnknownName: no policy has that name; the nearest name is suggested.
    """
    entry = _entries.get(_aliases.get(name, name)) or policies().get(_aliases.get(name, name))
    if entry is None:
        raise UnknownName(kind="policy", name=name, known=[*policies(), *_aliases])
    return entry
