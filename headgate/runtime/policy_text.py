"""Policies as they are written on a command line: `bsd(search=log,clusters=12)`.

A name, then parameters in parentheses, separated by commas. Several values of one parameter are
joined by `+`, and a value may itself be a policy: `amos(policies=hr+cqc(inner=hnr))`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

from headgate.errors import ConfigRefused, UnknownName
from headgate.policies import Policy, policy_entry, policy_named

EXAMPLE = "a name, or a name with parameters as in bsd(search=log,clusters=12)"
WORDS: dict[str, bool | None] = {"true": True, "false": False, "none": None}


@dataclass(frozen=True)
class Spelled:
    """A policy as text. A run uses a policy object up, so each run makes a new one from it.

    >>> Spelled("bsd( search = log )").text, Spelled("fifo").name
    ('bsd(search=log)', 'fcfs')
    """

    text: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", "".join(self.text.split()))
        self.make()

    @property
    def name(self) -> str:
        """The policy's main name, even if the text uses an alias."""
        return policy_entry(self.text.partition("(")[0]).name

    @property
    def folder(self) -> str:
        """The text as a folder name: only letters, digits, underscores, dots and dashes."""
        return re.sub(r"[^\w.-]+", "-", self.text).strip("-")

    @property
    def bare(self) -> bool:
        """Whether the text is a name without parameters."""
        return "(" not in self.text

    def make(self) -> Policy:
        """Return a new policy object.

        Raises:
            UnknownName: there is no such policy, or it has no such parameter.
            ConfigRefused: the text cannot be parsed, or the policy refuses a value.
        """
        return _parse_policy(self.text)


def spelled(text: str) -> list[Spelled]:
    """Parse a list of policies, separated by commas outside of parentheses.

    >>> [policy.text for policy in spelled("hr, bsd(search=log,clusters=12), rr")]
    ['hr', 'bsd(search=log,clusters=12)', 'rr']
    """
    parts = [part.strip() for part in _split(text, ",", policy_text=text)]
    policies = [Spelled(part) for part in parts if part]
    if not policies:
        _refuse(text, EXAMPLE)
    return policies


def value_of(text: str) -> Any:
    """Return the number, boolean or None that a text denotes, else the text itself.

    >>> value_of("12"), value_of("0.5"), value_of("true"), value_of("log")
    (12, 0.5, True, 'log')
    """
    if text.lower() in WORDS:
        return WORDS[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _parse_policy(text: str) -> Policy:
    name, opened, inside = text.partition("(")
    if opened and not inside.endswith(")"):
        _refuse(text, f"{EXAMPLE}: nothing may follow the last parenthesis")
    entry = policy_entry(name)
    parameters: dict[str, Any] = {}
    for part in _split(inside[:-1], ",", policy_text=text) if opened else ():
        key, equals, value = part.partition("=")
        if not equals or not key or not value:
            _refuse(text, f"{EXAMPLE}: '{part}' is not KEY=VALUE")
        if key not in entry.parameters:
            where = f"policy '{name}'"
            raise UnknownName(kind="parameter", name=key, known=entry.parameters, where=where)
        if key in parameters:
            _refuse(text, f"{EXAMPLE}: '{key}' is given twice")
        parameters[key] = _value(value, entry.parameters[key], text)
    return policy_named(name, **parameters)


def _value(text: str, default: Any, policy_text: str) -> Any:
    """Parse one value, or several joined by +, into the type of the default: a tuple or a text."""
    alone = value_of(text)
    if not isinstance(alone, str):
        return alone
    parts = [
        _parse_policy(part) if "(" in part else part
        for part in _split(text, "+", policy_text=policy_text)
    ]
    if len(parts) == 1 and not isinstance(default, tuple):
        return parts[0]
    if all(isinstance(part, str) for part in parts) and not isinstance(default, tuple):
        return ",".join(map(str, parts))
    return tuple(parts)


def _split(text: str, mark: str, *, policy_text: str) -> Iterator[str]:
    """Yield the parts of a text between marks; a mark inside parentheses does not count.

    Args:
        policy_text: the whole text, for refusals.
    """
    depth, first = 0, 0
    for index, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth < 0:
            break
        if character == mark and depth == 0:
            yield text[first:index]
            first = index + 1
    if depth:
        _refuse(policy_text, f"{EXAMPLE}: the parentheses do not match")
    yield text[first:]


def _refuse(text: str, expected: str) -> NoReturn:
    raise ConfigRefused(path="policy", key="spelling", value=text, expected=expected)
