"""A YAML file with a mapping in which no key appears twice."""

from collections.abc import Hashable
from pathlib import Path as File
from typing import Any

import yaml

from headgate.config.yaml_limits import TEXT_BYTES, LimitedLoader
from headgate.errors import ConfigRefused


def read_mapping(path: str | File) -> dict[Any, Any]:
    """Read a YAML file that holds a mapping.

    Raises:
        ConfigRefused: the file cannot be read, is not YAML, or holds no mapping.
    """
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(TEXT_BYTES + 1)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise ConfigRefused(
            path=str(path), key="", value=None, expected=f"a readable file: {reason.lower()}"
        ) from error
    if len(text) > TEXT_BYTES:
        expected = f"at most {TEXT_BYTES} letters long"
        raise ConfigRefused(path=str(path), key="", value=None, expected=expected)
    try:
        data = yaml.load(text, Loader=_NoTwins)
    except ValueError as error:  # a number of 5 000 digits, or the 31st of February
        raise ConfigRefused(
            path=str(path), key="", value=None, expected=f"valid YAML: {error}"
        ) from error
    except yaml.YAMLError as error:
        place = getattr(error, "problem_mark", None)
        line = f" (line {place.line + 1})" if place else ""
        problem = getattr(error, "problem", None) or "not YAML"
        raise ConfigRefused(
            path=str(path), key="", value=None, expected=f"valid YAML{line}: {problem}"
        ) from error
    if not isinstance(data, dict):
        raise ConfigRefused(path=str(path), key="", value=None, expected="a mapping of keys")
    return data


class _NoTwins(LimitedLoader):
    """A YAML loader that refuses a key that appears twice, where YAML would take the last one."""


def _mapping(loader: _NoTwins, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
    seen = set()
    for key_node, _ in node.value:
        key = loader.construct_object(key_node, deep=True)
        if not isinstance(key, Hashable):
            raise yaml.MarkedYAMLError(
                problem="a key must be a plain word", problem_mark=key_node.start_mark
            )
        if key in seen:
            raise yaml.MarkedYAMLError(
                problem=f"the key '{key}' appears twice", problem_mark=key_node.start_mark
            )
        seen.add(key)
    return dict(yaml.SafeLoader.construct_mapping(loader, node, deep=True))


_NoTwins.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)
