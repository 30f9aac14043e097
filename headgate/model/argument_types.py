"""Checks of argument types: an argument of a wrong type is refused in one sentence."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from numbers import Real
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from headgate.errors import ConfigRefused

WORDS: dict[Any, str] = {
    str: "a text", float: "a number", int: "a whole number", bool: "True or False",
    type(None): "None", Mapping: "a mapping", Callable: "a function", tuple: "a tuple",
}  # fmt: skip


def refuse_types(subject: Any) -> None:
    """Refuse a dataclass with a field of another type than it declares.

    Raises:
        ConfigRefused: names the first such field.
    """
    for field in fields(subject):
        value = getattr(subject, field.name)
        refuse_type(type(subject).__name__, field.name, value, field.type)


def refuse_type(where: str, name: str, value: object, kind: Any) -> None:
    """Refuse a value of another type.

    Raises:
        ConfigRefused: names the value and the type.

    >>> refuse_type("Query", "weight", "heavy", float)
    Traceback (most recent call last):
    ...
    headgate.errors.ConfigRefused: Query: weight is 'heavy', but must be a number.
    """
    kinds = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    if not any(_is(value, alternative) for alternative in kinds):
        names = " or ".join(dict.fromkeys(map(_words, kinds)))
        visible = "None" if value is None else value
        raise ConfigRefused(path=where, key=name, value=visible, expected=names)


def _is(value: object, kind: Any) -> bool:
    origin = get_origin(kind) or kind
    if origin is Literal:
        return value in get_args(kind)
    if origin is float:
        return isinstance(value, Real) and not isinstance(value, bool)
    return isinstance(value, origin) if isinstance(origin, type) else True


def _words(kind: Any) -> str:
    origin = get_origin(kind) or kind
    if origin is Literal:
        return " or ".join(map(repr, get_args(kind)))
    return WORDS.get(origin) or f"a {origin.__name__}"
