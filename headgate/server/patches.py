"""Merge patches (RFC 7386): what leads from one state of a run to the next."""

from collections.abc import Mapping
from typing import Any


def difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Return the merge patch that leads from one mapping to another.

    >>> difference({"a": 1, "b": {"c": 2, "d": 3}, "e": 4}, {"a": 1, "b": {"c": 2, "d": 5}})
    {'b': {'d': 5}, 'e': None}
    """
    patch: dict[str, Any] = {}
    for key, value in after.items():
        old = before.get(key)
        if isinstance(value, dict) and isinstance(old, dict):
            if inner := difference(old, value):
                patch[key] = inner
        elif value != old:
            patch[key] = value
    for key in before:
        if key not in after:
            patch[key] = None
    return patch


def patched(state: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Return a state after a merge patch, in which None removes a key.

    >>> patched({"a": 1, "b": {"c": 2, "d": 3}, "e": 4}, {"b": {"d": 5}, "e": None})
    {'a': 1, 'b': {'c': 2, 'd': 5}}
    """
    result = dict(state)
    for key, value in patch.items():
        old = result.get(key)
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict) and isinstance(old, dict):
            result[key] = patched(old, value)
        else:
            result[key] = value
    return result
