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
    """A policy that can be made any number of times, since a run uses one up.

    >>> Spelled("bsd( search = log )").text, Spelled("fifo").name
    ('bsd(search=log)', 'fcfs')
    """

    text: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", "".join(self.text.split()))
        self.make()

    @property
    def name(self) -> str:
        """The policy's own name, whatever other name it was called by."""
        return policy_entry(self.text.partition("(")[0]).name

    @property
    def folder(self) -> str:
        """A name for a folder of its own: letters, digits, points and dashes."""
        return re.sub(r"[^\w.-]+", "-", self.text).strip("-")

    @property
    def bare(self) -> bool:
        """Whether it is a name without parameters."""
        return "(" not in self.text

    def make(self) -> Policy:
        """Gives a new policy.

        Raises:
            UnknownName: there is no such policy, or it has no such parameter.
            ConfigRefused: it is not so written, or the policy refuses a value.
        """
        return _made(self.text)


def spelled(text: str) -> list[Spelled]:
    """Gives the policies of a list, separated by commas outside of parentheses.

    >>> [each.text for each in spelled("hr, bsd(search=log,clusters=12), rr")]
    ['hr', 'bsd(search=log,clusters=12)', 'rr']
    """
    parts = [part.strip() for part in _split(text, ",", of=text)]
    found = [Spelled(part) for part in parts if part]
    if not found:
        _refuse(text, EXAMPLE)
    return found


def value_of(text: str) -> Any:
    """Gives the number, true, false or none that a text is, else the text itself.

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


def _made(text: str) -> Policy:
    name, opened, inside = text.partition("(")
    if opened and not inside.endswith(")"):
        _refuse(text, f"{EXAMPLE}: nothing follows the last parenthesis")
    entry = policy_entry(name)
    parameters: dict[str, Any] = {}
    for part in _split(inside[:-1], ",", of=text) if opened else ():
        key, equals, value = part.partition("=")
        if not equals or not key or not value:
            _refuse(text, f"{EXAMPLE}: '{part}' is no KEY=VALUE")
        if key not in entry.parameters:
            where = f"policy '{name}'"
            raise UnknownName(kind="parameter", name=key, known=entry.parameters, where=where)
        if key in parameters:
            _refuse(text, f"{EXAMPLE}: '{key}' is there twice")
        parameters[key] = _value(value, entry.parameters[key], text)
    return policy_named(name, **parameters)


def _value(text: str, default: Any, of: str) -> Any:
    """Gives one value, or several joined by + as the default has them: a tuple or one text."""
    alone = value_of(text)
    if not isinstance(alone, str):
        return alone
    parts = [_made(part) if "(" in part else part for part in _split(text, "+", of=of)]
    if len(parts) == 1 and not isinstance(default, tuple):
        return parts[0]
    if all(isinstance(part, str) for part in parts) and not isinstance(default, tuple):
        return ",".join(map(str, parts))
    return tuple(parts)


def _split(text: str, mark: str, *, of: str) -> Iterator[str]:
    """Cuts a text at a mark, but not inside parentheses."""
    depth, first = 0, 0
    for at, sign in enumerate(text):
        depth += (sign == "(") - (sign == ")")
        if depth < 0:
            break
        if sign == mark and depth == 0:
            yield text[first:at]
            first = at + 1
    if depth:
        _refuse(of, f"{EXAMPLE}: a parenthesis is not closed, or one too many is")
    yield text[first:]


def _refuse(text: str, expected: str) -> NoReturn:
    raise ConfigRefused(path="policy", key="spelling", value=text, expected=expected)
